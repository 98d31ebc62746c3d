// Receives webhooks, and believes only those that are genuine, with nothing but Go's standard library.

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	toleranceS   = 300
	bodyBytesMax = 1024 * 1024
)

// Ended is what a webhook tells of a job.
type Ended struct {
	Type string
	Data struct{ Job, Name, Queue string }
}

// firstWebhook listens on this port of this machine, and passes on the first genuine webhook.
func firstWebhook(port, secret string) (<-chan Ended, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 {
		return nil, errors.New("WEBHOOK_SECRET is none")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	told := make(chan Ended, 1)
	server := http.Server{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	server.Handler = http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
		var ended Ended
		if err != nil || !isGenuine(request.Header, body, key, time.Now()) || json.Unmarshal(body, &ended) != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		// The same id comes again if this answer is lost: keep the ids that you have worked off, with the work itself.
		response.WriteHeader(http.StatusNoContent)
		select {
		case told <- ended:
		default: // only the first one is wanted here
		}
	})
	go server.Serve(listener)
	fmt.Println("listening")
	return told, nil
}

// isGenuine tells whether exactly this body was signed with the secret, not long ago.
func isGenuine(headers http.Header, body, key []byte, now time.Time) bool {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	signedS, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || now.Unix()-signedS > toleranceS || signedS-now.Unix() > toleranceS {
		return false
	}
	signed := hmac.New(sha256.New, key)
	signed.Write([]byte(id + "." + timestamp + "."))
	signed.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(signed.Sum(nil)))
	found := false
	for _, signature := range strings.Fields(headers.Get("webhook-signature")) {
		found = hmac.Equal(expected, []byte(signature)) || found
	}
	return found
}
