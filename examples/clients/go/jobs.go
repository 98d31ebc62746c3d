// Jobs over HTTP: what the generated package does not do by itself. Copy it and change it as you like.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"jobs/fencerow"
)

const (
	notEnded = "FR-307"
	waitS    = 30 // of one request: shorter than what proxies cut off
)

// Event is something that happened to a job: its kind, and its data as JSON.
type Event struct {
	ID, Kind string
	Data     json.RawMessage
}

// connect makes a client of the gateway. What is lost is sent again for as long as `patience`.
func connect(url, token string, patience time.Duration) *fencerow.APIClient {
	configuration := fencerow.NewConfiguration()
	configuration.Servers = fencerow.ServerConfigurations{{URL: url}}
	configuration.AddDefaultHeader("Authorization", "Bearer "+token)
	configuration.HTTPClient = &http.Client{
		Transport: &patient{http.DefaultTransport, patience},
		// A token goes to the address that you gave and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return fencerow.NewAPIClient(configuration)
}

// refusal is the problem document of an error, if the gateway sent one. Its code is stable: docs/errors.md has them all.
func refusal(err error) (fencerow.Problem, bool) {
	var told *fencerow.GenericOpenAPIError
	if !errors.As(err, &told) {
		return fencerow.Problem{}, false
	}
	problem, is := told.Model().(fencerow.Problem)
	return problem, is
}

// resultOf waits for the job's end, and returns what its handler returned.
func resultOf(ctx context.Context, jobs *fencerow.APIClient, id string) (any, error) {
	for {
		result, _, err := jobs.JobsAPI.GetResult(ctx, id).Wait(waitS).Execute()
		if problem, is := refusal(err); is && problem.Code == notEnded {
			continue
		}
		return result, err
	}
}

// follow tells what happens to the job, from now to its end. A stream that breaks off goes on with the next one, where it
// was. The generated client reads answers whole, so the stream is read here.
func follow(ctx context.Context, jobs *fencerow.APIClient, id string, tell func(Event)) error {
	configuration := jobs.GetConfig()
	last := ""
	for {
		request, err := http.NewRequestWithContext(ctx, "GET", configuration.Servers[0].URL+"/v1/jobs/"+id+"/events", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", configuration.DefaultHeader["Authorization"])
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		answer, err := configuration.HTTPClient.Do(request)
		if err != nil {
			return err
		}
		if answer.StatusCode == http.StatusNoContent {
			answer.Body.Close()
			return nil // it had ended, and that was told
		}
		if answer.StatusCode != http.StatusOK {
			answer.Body.Close()
			return fmt.Errorf("the stream of job %s: %s", id, answer.Status)
		}
		ended := read(answer.Body, func(event Event) {
			last = event.ID
			tell(event)
		})
		answer.Body.Close()
		if ended {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// read tells the events of a stream, and whether the last one was its end.
func read(stream io.Reader, tell func(Event)) bool {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1024*1024)
	var event Event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			event.ID = value
		case "event":
			event.Kind = value
		case "data":
			event.Data = json.RawMessage(value)
		case "": // an empty line ends an event; ": still here" only says that the stream is alive
			if event.Kind != "" {
				tell(event)
			}
			if event.Kind == "end" || event.Kind == "gone" {
				return true
			}
			event = Event{}
		}
	}
	return false
}

// patient sends a request again that was lost, or that the gateway wants to have later. That makes no second job where a
// submit has a key or an id of its own.
type patient struct {
	inner    http.RoundTripper
	patience time.Duration
}

func (p *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	until := time.Now().Add(p.patience)
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		answer, err := p.inner.RoundTrip(request)
		if err == nil && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
			return answer, nil
		}
		if err == nil {
			asked, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
			wait = max(wait, time.Duration(asked)*time.Second)
		}
		if time.Now().Add(wait).After(until) {
			return answer, err
		}
		if err == nil {
			answer.Body.Close()
		}
		if err := pause(request.Context(), wait); err != nil {
			return nil, err
		}
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = body
		}
	}
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func min(one, other time.Duration) time.Duration {
	if one < other {
		return one
	}
	return other
}

func max(one, other time.Duration) time.Duration {
	if one > other {
		return one
	}
	return other
}
