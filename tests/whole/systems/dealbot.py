"""dealbot on Fencerow: deals with storage providers are tried out, around the clock."""

from fencerow import App, Job
from fencerow.guards.mutex import Mutex
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
provider = Service("deal")


@app.job(queue="deals", attempts_max=1, timeout_s=360)
async def deal(job: Job, provider_name: str) -> str:
    return await provider.ask(provider_name)


@app.job(queue="deals", attempts_max=1, timeout_s=360)
async def deal_alone(job: Job, provider_name: str, stale_s: float = 600) -> str:
    async with Mutex(app, f"sp:{provider_name}", purpose="deal", stale_s=stale_s, wait_s=0):
        return await provider.ask(provider_name)
