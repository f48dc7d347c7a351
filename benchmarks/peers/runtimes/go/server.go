// The handlers of README.md with net/http: a goroutine for each connection, one thread in Go for each core.
package main

import (
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

var hundred = []byte(strings.Repeat("x", 99) + "\n")

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func reply(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func main() {
	port, folder := os.Args[1], os.Args[2]

	files := http.FileServer(http.Dir(folder))

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, hundred)
	})
	http.HandleFunc("/fib/", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/fib/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, []byte(strconv.Itoa(fib(n))))
	})
	http.Handle("/file/", files)
	http.Handle("/block/", files)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
