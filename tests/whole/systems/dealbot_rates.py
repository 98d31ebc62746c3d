"""dealbot's clockwork on Fencerow: a table of rates and a list of providers, and no scheduler of its own."""

from fencerow import App
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
provider = Service("poll")
providers = ["sp-1", "sp-2"]  # what the registry on the chain lists


@app.job(queue="deals", attempts_max=1)
async def deal(provider: str) -> None: ...


@app.job(queue="deals", attempts_max=1)
async def retention_poll() -> None: ...


@app.job(queue="polls", attempts_max=1)
async def long_poll() -> None:
    await provider.ask("everybody")


def active() -> list[str]:
    return list(providers)


app.schedule(deal, rate=4, spread=False, misfire="all", catchup_max=10, entities=active)
app.schedule(retention_poll, interval_s=3600)
