//go:build !race

// Not with the race detector, whose own memory grows with what it has seen.

package optima

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"optima/internal/heap"
)

// usage is what the process holds of the system.
type usage struct{ rssBytes, descriptors, threads int }

func (u usage) String() string {
	return fmt.Sprintf("%d KiB, %d descriptors, %d threads", u.rssBytes>>10, u.descriptors,
		u.threads)
}

func usageNow(t *testing.T) usage {
	t.Helper()
	debug.FreeOSMemory()
	heap.Trim()
	fields := bytes.Fields(must[[]byte](t)(os.ReadFile("/proc/self/statm")))
	pages := must[int](t)(strconv.Atoi(string(fields[1])))
	descriptors := must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd"))
	threads := must[[]os.DirEntry](t)(os.ReadDir("/proc/self/task"))
	return usage{pages * os.Getpagesize(), len(descriptors), len(threads)}
}

// life makes, uses and closes a model and a session.
func life(t *testing.T, engine *Engine, prompt []int32) {
	model := must[*Model](t)(engine.OpenModel(ctx, goldenFile("tiny/"+tiny+".gguf"), nil))
	defer model.Close()
	session := must[*Session](t)(model.NewSession(nil))
	defer session.Close()
	events := 0
	request := &Request{PromptIDs: prompt, MaxTokens: 3, Flags: RequestIgnoreEOS,
		OnEvent: func(Event) error { events++; return nil }}
	r := must[*Result](t)(session.Generate(ctx, request))
	if len(r.TokenIDs) != 3 || events < 3 {
		t.Fatalf("%d tokens, %d events", len(r.TokenIDs), events)
	}
	stream := must[*Stream](t)(session.Stream(ctx, &Request{PromptIDs: prompt, MaxTokens: 2,
		Flags: RequestIgnoreEOS}))
	for stream.Next() {
	}
	stream.Close()
}

// lives has ten in each engine.
func lives(t *testing.T, count int, prompt []int32) {
	for i := 0; i < count/10; i++ {
		engine := must[*Engine](t)(NewEngine(&EngineOptions{Threads: 1}))
		for j := 0; j < 10; j++ {
			life(t, engine, prompt)
		}
		engine.Close()
	}
}

// TestAThousandLivesLeaveNothing makes, uses and closes everything 1,000 times.
func TestAThousandLivesLeaveNothing(t *testing.T) {
	prompt := readJSON[golden](t, "tiny/"+tiny+".json").PromptIDs[:8]
	lives(t, 500, prompt)
	before := usageNow(t)
	lives(t, 1000, prompt)
	after := usageNow(t)
	grown := after.rssBytes - before.rssBytes
	t.Logf("before %v, after %v", before, after)
	// A leak shows every time; Go's own heap and threads come when the machine is busy, and stay.
	if grown > 4<<20 {
		lives(t, 1000, prompt)
		again := usageNow(t)
		grown = again.rssBytes - after.rssBytes
		t.Logf("and then %v", again)
		after = again
	}
	// 4 KiB, a hundredth of a descriptor or of a thread a life would be found.
	if grown > 4<<20 || after.descriptors > before.descriptors+2 ||
		after.threads > before.threads+8 {
		t.Errorf("before %v, after %v", before, after)
	}
}
