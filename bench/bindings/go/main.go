// Bench repeats the workload of bench/bindings/bench.c in Go: bench MODEL.gguf [ROUNDS]
//
// From this folder, with the library on LD_LIBRARY_PATH:
//
//	GOFLAGS=-mod=mod go build -o ../../../build/bench_go .
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"time"

	"optima"
)

const tokens, requests = 250, 4

var ctx = context.Background()

type tally struct{ tokens, bytes int64 }

func (t *tally) count(e optima.Event) {
	if e.Type == optima.EventToken {
		t.tokens++
		t.bytes += int64(len(e.Text))
	}
}

func workload() *optima.Request {
	return &optima.Request{Prompt: "a", Flags: optima.RequestIgnoreEOS, MaxTokens: tokens}
}

func withCallback(s *optima.Session, counted *tally) error {
	request := workload()
	request.OnEvent = func(e optima.Event) error { counted.count(e); return nil }
	_, err := s.Generate(ctx, request)
	return err
}

func withStream(s *optima.Session, counted *tally) error {
	stream, err := s.Stream(ctx, workload())
	if err != nil {
		return err
	}
	for stream.Next() {
		counted.count(stream.Event())
	}
	_, err = stream.Result()
	return err
}

// measure gives the sorted ns per event of the rounds; the first, which warms up, is not counted.
func measure(model string, drive optima.Drive, run func(*optima.Session, *tally) error,
	rounds int) (ns []float64, last tally, err error) {
	engine, err := optima.NewEngine(&optima.EngineOptions{Threads: 1, Drive: drive})
	if err != nil {
		return nil, last, err
	}
	defer engine.Close()
	m, err := engine.OpenModel(ctx, model, nil)
	if err != nil {
		return nil, last, err
	}
	defer m.Close()
	s, err := m.NewSession(nil)
	if err != nil {
		return nil, last, err
	}
	defer s.Close()
	for round := -1; round < rounds; round++ {
		var spent time.Duration
		last = tally{}
		for i := 0; i < requests; i++ {
			if err := s.Truncate(0); err != nil {
				return nil, last, err
			}
			begin := time.Now()
			if err := run(s, &last); err != nil {
				return nil, last, err
			}
			spent += time.Since(begin)
		}
		if last.tokens != tokens*requests {
			return nil, last, fmt.Errorf("%d tokens instead of %d", last.tokens, tokens*requests)
		}
		if round >= 0 {
			ns = append(ns, float64(spent.Nanoseconds())/float64(last.tokens))
		}
	}
	sort.Float64s(ns)
	return ns, last, nil
}

func main() {
	log.SetFlags(0)
	rounds := 20
	if len(os.Args) > 2 {
		rounds, _ = strconv.Atoi(os.Args[2])
	}
	if len(os.Args) < 2 || rounds < 1 {
		log.Fatalf("usage: %s MODEL.gguf [ROUNDS]", os.Args[0])
	}
	fmt.Printf(`{"language": "go", "rounds": %d`, rounds)
	var last tally
	for _, way := range []struct {
		name  string
		drive optima.Drive
		run   func(*optima.Session, *tally) error
	}{{"callback", optima.DriveHost, withCallback}, {"poll", optima.DriveLibrary, withStream}} {
		ns, counted, err := measure(os.Args[1], way.drive, way.run, rounds)
		if err != nil {
			log.Fatal(err)
		}
		last = counted
		fmt.Printf(`, "%s_ns_per_event": %.0f, "%s_ns_per_event_median": %.0f`, way.name, ns[0],
			way.name, ns[rounds/2])
	}
	fmt.Printf(", \"tokens\": %d, \"bytes\": %d}\n", last.tokens, last.bytes)
}
