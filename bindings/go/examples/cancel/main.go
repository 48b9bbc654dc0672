// Cancel ends answers from outside: cancel MODEL.gguf
//
// First another goroutine cancels the context once some text is there, as a user who has read
// enough would; then a context's deadline passes. The session goes on to be used.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"optima"
)

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
	engine, err := optima.NewEngine(nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	model, err := engine.OpenModel(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer model.Close()
	session, err := model.NewSession(nil)
	if err != nil {
		return err
	}
	defer session.Close()

	ctx, cancel := context.WithCancel(context.Background())
	enough := make(chan struct{})
	go func() {
		<-enough
		cancel()
	}()
	tokens := 0
	request := &optima.Request{Prompt: "Once upon a time",
		Flags: optima.RequestIgnoreEOS | optima.RequestContextShift} // It never ends by itself.
	request.OnEvent = func(e optima.Event) error {
		if e.Type == optima.EventToken {
			if tokens++; tokens == 8 {
				close(enough)
			}
		}
		return nil
	}
	result, err := session.Generate(ctx, request)
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("not cancelled: %w", err)
	}
	fmt.Printf("cancelled; the session holds what was said: %q\n", result.Text)

	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	request.OnEvent = nil
	_, err = session.Generate(ctx, request)
	var late *optima.Error
	if !errors.As(err, &late) || late.Status != optima.StatusDeadline {
		return fmt.Errorf("not late: %w", err)
	}
	fmt.Println(late)
	return nil
}
