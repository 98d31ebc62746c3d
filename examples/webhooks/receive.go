// Receive Fencerow's webhooks with nothing but Go's standard library.
//
//	WEBHOOK_SECRETS="whsec_…" go run receive.go 8000
//
// Give both secrets, with a blank between, while one is replaced. TLS is the business of what stands before it.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	toleranceS     = 300
	bodyBytesMax   = 1024 * 1024
	secretBytesMin = 24
)

var (
	idForm        = regexp.MustCompile(`^[A-Za-z0-9_:=+/-]{1,256}$`)
	timestampForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})$`)
)

// isGenuine tells whether exactly this body was signed with one of the secrets, not long ago.
func isGenuine(headers http.Header, body []byte, secrets [][]byte, now time.Time) bool {
	id, timestamp := oneOf(headers, "webhook-id"), oneOf(headers, "webhook-timestamp")
	if !idForm.MatchString(id) || !timestampForm.MatchString(timestamp) {
		return false
	}
	signedS, err := strconv.ParseInt(timestamp, 10, 64)
	ageS := float64(now.UnixMilli())/1000 - float64(signedS)
	if err != nil || ageS > toleranceS || ageS < -toleranceS {
		return false
	}
	signatures := strings.Split(oneOf(headers, "webhook-signature"), " ")
	if len(signatures) > 16 {
		signatures = signatures[:16]
	}
	found := false
	for _, secret := range secrets {
		signed := hmac.New(sha256.New, secret)
		signed.Write([]byte(id + "." + timestamp + "."))
		signed.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(signed.Sum(nil)))
		for _, signature := range signatures {
			found = hmac.Equal(expected, []byte(signature)) || found
		}
	}
	return found
}

// oneOf is the header's value; nothing if it comes twice, for then nobody knows which one counts.
func oneOf(headers http.Header, name string) string {
	if values := headers.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

func receive(secrets [][]byte) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
		if err != nil {
			response.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if request.Method != http.MethodPost || !isGenuine(request.Header, body, secrets, time.Now()) {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		// The same id comes again if this answer is lost: keep the ids that you have worked off, in the transaction
		// of the work itself, and answer 204 to those without doing it again.
		fmt.Println("received", request.Header.Get("webhook-id"))
		response.WriteHeader(http.StatusNoContent)
	}
}

func main() {
	var secrets [][]byte
	for _, text := range strings.Fields(os.Getenv("WEBHOOK_SECRETS")) {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(secret) < secretBytesMin {
			log.Fatal("WEBHOOK_SECRETS has something else than secrets")
		}
		secrets = append(secrets, secret)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	server := http.Server{Handler: receive(secrets), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}
