"""dealbot on Fencerow, one job per storage provider at a time: a key in place of its lock, and no scheduler."""

from collections import Counter

from fencerow import App
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
service = Service("deal")
providers = [f"sp-{number:02}" for number in range(18)]
running: Counter[str] = Counter()
most: Counter[str] = Counter()  # that ran for a provider at once
order: list[str] = []


def of(provider: str) -> str:
    return f"sp:{provider}"


async def tried(what: str, provider: str) -> str:
    running[provider] += 1
    most[provider] = max(most[provider], running[provider])
    order.append(what)
    try:
        return await service.ask(provider)
    finally:
        running[provider] -= 1


@app.job(queue="deals", attempts_max=1, timeout_s=360, exclusive=of)
async def deal(provider: str) -> str:
    return await tried("deal", provider)


@app.job(queue="retrievals", attempts_max=1, timeout_s=60, exclusive=of)
async def retrieval(provider: str) -> str:
    return await tried("retrieval", provider)


@app.job(queue="deals", attempts_max=1)
async def piece_cleanup() -> str:
    return await tried("cleanup", "all")


def active() -> list[str]:
    return list(providers)


app.schedule(deal, rate=4, misfire="all", entities=active)
app.schedule(retrieval, rate=2, misfire="all", entities=active)
app.schedule(piece_cleanup, interval_s=60, spread=False, misfire="all", overlap="queue")
