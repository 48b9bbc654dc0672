// Stream prints an answer as it comes, then what it cost: stream MODEL.gguf ["question"]
//
// The text is copied from an io.Reader; a range over stream.Events() would give tokens instead.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"optima"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s MODEL.gguf [\"question\"]", os.Args[0])
	}
	question := "Name three rivers of Europe."
	if len(os.Args) > 2 {
		question = os.Args[2]
	}
	if err := talk(os.Args[1], question, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func talk(path, question string, out io.Writer) error {
	ctx := context.Background()
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
	session, err := model.NewSession(nil)
	if err != nil {
		return err
	}
	defer session.Close()
	prompt, err := model.Render(optima.Chat{
		Messages: []optima.Message{{Role: "user", Content: question}}})
	if err != nil {
		return err
	}
	stream, err := session.Stream(ctx, &optima.Request{Prompt: prompt, MaxTokens: 64})
	if err != nil {
		return err
	}
	defer stream.Close()
	if _, err := io.Copy(out, stream); err != nil {
		return err
	}
	result, err := stream.Result()
	if err != nil {
		return err
	}
	c := result.Counters
	_, err = fmt.Fprintf(out, "\n%v: %d prompt tokens in %v, %d output tokens in %v\n",
		result.Finish, c.PromptTokens, c.Prefill, c.OutputTokens, c.Decode)
	return err
}
