// Submits jobs and shows all that a program does with them: FENCEROW_GATEWAY_URL, FENCEROW_TOKEN, WEBHOOK_SECRET and the
// port for webhooks say with whom.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"jobs/fencerow"
)

func main() {
	ctx := context.Background()
	told, err := firstWebhook(os.Args[1], os.Getenv("WEBHOOK_SECRET"))
	check(err)
	jobs := connect(os.Getenv("FENCEROW_GATEWAY_URL"), os.Getenv("FENCEROW_TOKEN"), 30*time.Second)

	// A submit under a key. Sent again, it is the same job.
	pages := fencerow.NewSubmit("pages")
	pages.SetArgs(map[string]any{"path": "a.pdf", "copies": 2})
	submit := jobs.JobsAPI.SubmitJob(ctx).Submit(*pages).IdempotencyKey(`"invoice-17"`)
	first, _, err := submit.Execute()
	check(err)
	again, answer, err := submit.Execute()
	check(err)
	fmt.Println("again", again.Id == first.Id, answer.Header.Get("Idempotent-Replayed"))
	result, err := resultOf(ctx, jobs, first.Id)
	check(err)
	text, err := json.Marshal(result)
	check(err)
	fmt.Println("result", string(text))

	// A submit that waits is answered with the end of its job, where that comes in time.
	pages.SetArgs(map[string]any{"path": "d.pdf"})
	ended, _, err := jobs.JobsAPI.SubmitJob(ctx).Submit(*pages).Wait(waitS).Execute()
	check(err)
	text, err = json.Marshal(ended.Result)
	check(err)
	fmt.Println("waited", ended.GetState(), string(text))

	// A job that nobody runs yet, and never will.
	pages.SetDelayS(3600)
	later, _, err := jobs.JobsAPI.SubmitJob(ctx).Submit(*pages).Execute()
	check(err)
	cancelled, _, err := jobs.JobsAPI.CancelJob(ctx, later.Id).Execute()
	check(err)
	job, _, err := jobs.JobsAPI.GetJob(ctx, later.Id).Execute()
	check(err)
	fmt.Println("cancel", cancelled.Answer, job.State)

	// What a job says while it runs, up to its end.
	scan := fencerow.NewSubmit("scan")
	scan.SetArgs(map[string]any{"path": "b.pdf"})
	slow, _, err := jobs.JobsAPI.SubmitJob(ctx).Submit(*scan).Execute()
	check(err)
	check(follow(ctx, jobs, slow.Id, func(event Event) {
		var data struct{ Message, State string }
		check(json.Unmarshal(event.Data, &data))
		switch event.Kind {
		case "log":
			fmt.Println("log", data.Message)
		case "end":
			fmt.Println("end", data.State)
		}
	}))

	// What does not fit is refused with a code, and nothing is stored.
	bad := fencerow.NewSubmit("pages")
	bad.SetArgs(map[string]any{"path": "c.pdf", "copies": "two"})
	_, _, err = jobs.JobsAPI.SubmitJob(ctx).Submit(*bad).Execute()
	problem, is := refusal(err)
	if !is {
		log.Fatal(err)
	}
	fmt.Println("refused", problem.Status, problem.Code, problem.GetWhere())

	webhook := <-told
	fmt.Println("webhook", webhook.Type, webhook.Data.Job == first.Id)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
