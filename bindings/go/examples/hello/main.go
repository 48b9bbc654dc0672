// Hello is the shortest way to an answer: hello MODEL.gguf ["prompt"]
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"optima"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s MODEL.gguf [\"prompt\"]", os.Args[0])
	}
	prompt := "The capital of France is"
	if len(os.Args) > 2 {
		prompt = os.Args[2]
	}
	text, err := answer(os.Args[1], prompt)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prompt + text)
}

func answer(path, prompt string) (string, error) {
	ctx := context.Background()
	engine, err := optima.NewEngine(nil)
	if err != nil {
		return "", err
	}
	defer engine.Close()
	model, err := engine.OpenModel(ctx, path, nil)
	if err != nil {
		return "", err
	}
	defer model.Close()
	session, err := model.NewSession(nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	result, err := session.Generate(ctx, &optima.Request{Prompt: prompt, MaxTokens: 32})
	if err != nil {
		return "", err
	}
	return result.Text, nil
}
