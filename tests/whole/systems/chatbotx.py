"""ChatbotX on Fencerow: what its assistants know is cut into chunks, long steps of its flows end in time, and each
workspace calls its provider once a second."""

from hashlib import sha256

from fencerow import App, Backoff
from fencerow.guards.replace import replace_for
from fencerow.limits import Limit, Rate
from tests.whole.systems.outside import Service

app = App(limits=[Limit("workspace", rate=Rate(1, per_s=1), per_key=True)])  # FENCEROW_URL
embedder, model, provider = Service("vector"), Service("outcome"), Service("answer")
CHUNKS = 3


@app.job(queue="knowledge", attempts_max=2, backoff=Backoff(base_s=5))
async def embed(source: str, version: int = 1, text: str = "") -> int:
    """What a source says, cut into chunks and embedded: once for each content, and the newest version stays."""
    async with replace_for(
        app, table="chunks", source_column="source", source=source, version=version, content_hash=digest(text)
    ) as replacing:
        if replacing.needed:
            names = [f"{source} v{version} {number}" for number in range(CHUNKS)]
            await replacing.ainsert([{"vector": await embedder.ask(name)} for name in names])
    return CHUNKS


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@app.job(queue="heavy", attempts_max=1, timeout_s=0.3)
async def heavy_step(flow: str) -> str:
    return await model.ask(flow)


@app.job(queue="providers", limits=lambda workspace: f"workspace/{workspace}")
async def call_provider(workspace: str) -> str:
    return await provider.ask(workspace)
