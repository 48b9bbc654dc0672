// Many_sessions holds sixteen conversations on one model: many_sessions MODEL.gguf
//
// All begin with the same instructions, which are computed once. Each has a goroutine and two
// turns; the engine batches what they ask at the same time.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"optima"
)

const (
	conversations = 16
	instructions  = "You are the keeper of a small museum. Answer each visitor in one short sentence.\n"
)

var questions = []string{"Visitor: What is in room %d?\nKeeper:",
	"\nVisitor: And behind it, number %d?\nKeeper:"}

// answer is what one conversation said.
type answer struct {
	texts  []string
	cached int64
	err    error
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s MODEL.gguf", os.Args[0])
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	engine, err := optima.NewEngine(nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	model, err := engine.OpenModel(ctx, path, nil)
	if err != nil {
		return err
	}
	defer model.Close()

	var answers [conversations]chan answer
	for i := range answers {
		answers[i] = make(chan answer, 1)
		go func(i int) { answers[i] <- talk(ctx, model, i+1) }(i)
	}
	cached := int64(0)
	for i := range answers {
		a := <-answers[i]
		if a.err != nil {
			return a.err // The others end with the context.
		}
		for turn, text := range a.texts {
			fmt.Printf("%2d.%d %s\n", i+1, turn+1, text)
		}
		cached += a.cached
	}
	fmt.Println(cached, "prompt tokens were not computed again")
	return nil
}

func talk(ctx context.Context, model *optima.Model, number int) (a answer) {
	session, err := model.NewSession(nil)
	if err != nil {
		return answer{err: err}
	}
	defer session.Close()
	for turn, question := range questions {
		request := &optima.Request{Prompt: fmt.Sprintf(question, number), MaxTokens: 12}
		if turn == 0 {
			request.Prompt = instructions + request.Prompt
		} else {
			request.Flags = optima.RequestAppend
		}
		stream, err := session.Stream(ctx, request)
		if err != nil {
			return answer{err: err}
		}
		result, err := stream.Result()
		if err != nil {
			return answer{err: err}
		}
		a.texts = append(a.texts, result.Text)
		a.cached += result.Counters.CachedTokens
	}
	return a
}
