"""ChatbotX on Fencerow: what its assistants know is cut into chunks, and long steps of its flows end in time."""

from fencerow import App, Backoff, Job
from tests.systems.outside import Service, write

app = App()  # FENCEROW_URL
embedder, model = Service("vector"), Service("outcome")
CHUNKS = 3


@app.job(queue="knowledge", attempts_max=2, backoff=Backoff(base_s=5))
def embed(job: Job, source: str) -> int:
    with job.transaction() as db:
        write(db, "DELETE FROM chunks WHERE source = %s", source)
        for number in range(CHUNKS):
            vector = embedder.ask_now(f"{source} {number}")
            write(db, "INSERT INTO chunks (source, vector) VALUES (%s, %s)", source, vector)
    return CHUNKS


@app.job(queue="heavy", attempts_max=1, timeout_s=0.3)
async def heavy_step(flow: str) -> str:
    return await model.ask(flow)
