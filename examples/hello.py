import asyncio
from fencerow import App, Job

app = App("sqlite:///hello.db")

@app.job(attempts_max=3, timeout_s=60)
async def count_words(job: Job, text: str) -> int:
    await job.progress(50, "counting")
    return len(text.split())

async def main() -> None:
    async with app, app.worker(slots=4):
        handle = await count_words.using(key="hello-1").asubmit("every row is fenced")
        again = await count_words.using(key="hello-1").asubmit("every row is fenced")
        print("same job:", handle.id == again.id, "replay:", again.replay)
        print("words:", await handle.aresult(timeout_s=10))

asyncio.run(main())
