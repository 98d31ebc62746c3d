"""ChatbotX on Fencerow, its rows: files to embed, steps that end once, and runs that synchronise a channel."""

from fencerow import App, Job
from fencerow.guards.mutex import Mutex
from fencerow.guards.transitions import Lease, Move, Transitions
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
provider, messenger = Service("vectors"), Service("message")

files = Transitions(
    app,
    table="ai_files",
    column="status",
    states=["pending", "processing", "done"],
    moves=[Move("start", "pending", "processing"), Move("finish", "processing", "done", sets="vectors")],
)
steps = Transitions(
    app,
    table="heavy_steps",
    column="outcome",
    states=["pending", "succeeded", "timed_out"],
    moves=[Move("succeed", "pending", "succeeded", sets="result"), Move("time_out", "pending", "timed_out")],
)
LEASE = Lease(
    lease_s=600,
    since="seen_at",
    fence="attempts",
    attempts_max=5,
    when_spent="give_up",
    sets=("scanned", "total", "imported"),
)
runs = Transitions(
    app,
    table="sync_runs",
    column="state",
    states=["init", "running", "succeeded", "partial", "failed"],
    moves=[
        Move("claim", "init", "running", lease=LEASE),
        Move("succeed", "running", "succeeded"),
        Move("end_partly", "running", "partial"),
        Move("give_up", ["init", "running"], "failed"),
    ],
)
app.add_chore(runs.reaper(every_s=0.05))


@app.job(queue="knowledge")
def embed_file(file_id: str) -> str:
    if files.move("start", file_id) is None:
        return "somebody else's"
    files.move("finish", file_id, values={"vectors": provider.ask_now(file_id)})
    return "embedded"


@app.job(queue="heavy")
def sync_channel(job: Job, run_id: str, pages: int) -> str:
    """Imports page after page and says so; a page that cannot be read does not stop the others."""
    run = runs.move("claim", run_id)
    if run is None:
        return "somebody else's"
    imported = 0
    for page in range(1, pages + 1):
        try:
            provider.ask_now(f"{run_id} {page}")
            imported += 1
        except ConnectionError:
            job.log(f"page {page} was not read")
        progress = {"scanned": page, "total": pages, "imported": imported}
        if runs.renew("claim", run_id, fence=run["attempts"], values=progress) is None:
            return "taken over"
    end = "succeed" if imported == pages else "end_partly"
    return str(runs.move(end, run_id, fence=run["attempts"]) is not None)


@app.job(queue="providers", attempts_max=2)
async def send(workspace: str) -> str:
    """One at a time for each workspace; a job that finds it busy frees its slot and comes back."""
    async with Mutex(app, f"workspace:{workspace}", busy="snooze", wait_s=0):
        return await messenger.ask(workspace)
