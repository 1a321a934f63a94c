package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load asks at a rate until its time is over, and prints how many answers of what size came: load URL RATE SECONDS.
func load() {
	url := os.Args[1]
	rate, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.Atoi(os.Args[3])
	const clients = 32
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	begin := time.Now()
	var next, good, size, worst atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				at := begin.Add(time.Duration(next.Add(1)) * time.Second / time.Duration(rate))
				if at.Sub(begin) > time.Duration(seconds)*time.Second {
					return
				}
				<-time.After(time.Until(at))
				r, _ := http.NewRequest(http.MethodGet, url, nil)
				r.Header.Set("Accept-Encoding", "gzip") // as the commands do
				answer, err := transport.RoundTrip(r)
				if err != nil {
					continue
				}
				n, err := io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if err == nil && answer.StatusCode == http.StatusOK {
					good.Add(1)
					size.Store(n)
				}
				if took := int64(time.Since(at)); took > worst.Load() {
					worst.Store(took)
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("%d %d %d\n", good.Load(), size.Load(), worst.Load())
}
