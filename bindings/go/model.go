package optima

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// ModelOptions says how a model is opened; the zero value is the default.
type ModelOptions struct {
	// Content says how much is loaded.
	Content Content
	// Weights says whether weights of 16 and 32 bits are quantised.
	Weights Weights
	// Repack says whether weights are held in a faster form too.
	Repack Repack
	// Progress gets the share of the file that is loaded, in [0, 1]; an error ends the loading.
	Progress func(fraction float32) error
}

// Model is a loaded model file: weights, tokenizer, metadata. It is read-only and shared by its
// sessions; all methods may be called from any goroutine.
type Model struct {
	handle handle[cModel]
	engine *Engine
}

// loading is what the cookies of one opening stand for.
type loading struct {
	carrier
	ctx      context.Context
	callback func(fraction float32) error
	reader   io.ReaderAt
}

func (l *loading) release() {}
func (l *loading) progress(fraction float32) int32 {
	ok := l.run(func() error {
		if err := l.ctx.Err(); err != nil || l.callback == nil {
			return err
		}
		return l.callback(fraction)
	})
	return verdictOf(ok)
}
func (l *loading) read(into unsafe.Pointer, offset, bytes int64) int32 {
	return verdictOf(l.run(func() error {
		n, err := l.reader.ReadAt(unsafe.Slice((*byte)(into), bytes), offset)
		if int64(n) == bytes { // A full read may come with io.EOF.
			return nil
		}
		if err == nil {
			return io.ErrUnexpectedEOF
		}
		return err
	}))
}

func verdictOf(ok bool) int32 {
	if ok {
		return 0
	}
	return 1
}

type openCall func(*cEngine, *arena, *cModelOptions, **cModel, **cError) Status

func (e *Engine) open(ctx context.Context, options *ModelOptions, l *loading, op string,
	call openCall) (*Model, error) {
	if options == nil {
		options = &ModelOptions{}
	}
	if ctx.Err() != nil {
		return nil, ctxError(ctx, op)
	}
	l.ctx, l.callback = ctx, options.Progress
	var memory arena
	defer memory.free()
	c := place[cModelOptions](&memory)
	c.structSize = uint32(unsafe.Sizeof(*c))
	c.content, c.weights, c.repack = options.Content, options.Weights, options.Repack
	c.progress, c.release = cProgressFn, cReleaseFn
	pointer, err := e.handle.enter(op)
	if err != nil {
		return nil, err
	}
	defer e.handle.leave()
	c.user = uintptr(cgo.NewHandle(l))
	var model *cModel
	var why *cError
	err = toError(op, call(pointer, &memory, c, &model, &why), why)
	l.rethrow()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctxError(ctx, op)
	case err != nil && l.err != nil:
		return nil, fmt.Errorf("optima: %s: %w", op, l.err)
	case err != nil:
		return nil, err
	}
	m := &Model{handle: newHandle("model", model, cModelDestroy), engine: e}
	runtime.SetFinalizer(m, func(m *Model) { go m.Close() })
	return m, nil
}

// ctxError is why a call ended with its context.
func ctxError(ctx context.Context, op string) error {
	if ctx.Err() == context.DeadlineExceeded {
		return newError(StatusDeadline, op, "the context's deadline has passed")
	}
	return newError(StatusCancelled, op, "the context is cancelled")
}

// OpenModel opens a GGUF file, memory-mapped (for a split set name any of its files), or a Hugging
// Face folder. The context ends the loading.
func (e *Engine) OpenModel(ctx context.Context, path string, options *ModelOptions) (*Model,
	error) {
	return e.open(ctx, options, &loading{}, "open model", func(p *cEngine, a *arena,
		c *cModelOptions, out **cModel, why **cError) Status {
		text, bytes := a.text(path)
		return cModelOpenPath(p, text, bytes, c, out, why)
	})
}

// OpenModelFile opens a part of an open file; length 0 = to the end. The file may be closed
// afterwards.
func (e *Engine) OpenModelFile(ctx context.Context, file *os.File, offset, length int64,
	options *ModelOptions) (*Model, error) {
	return e.open(ctx, options, &loading{}, "open model file", func(p *cEngine, a *arena,
		c *cModelOptions, out **cModel, why **cError) Status {
		defer runtime.KeepAlive(file)
		return cModelOpenFD(p, int32(file.Fd()), offset, length, c, out, why)
	})
}

// OpenModelReader reads a file of size bytes into memory of the engine.
func (e *Engine) OpenModelReader(ctx context.Context, reader io.ReaderAt, size int64,
	options *ModelOptions) (*Model, error) {
	l := &loading{reader: reader}
	return e.open(ctx, options, l, "open model reader", func(p *cEngine, a *arena,
		c *cModelOptions, out **cModel, why **cError) Status {
		return cModelOpenIO(p, newIO(a, l, size), c, out, why)
	})
}

func newIO(a *arena, l *loading, size int64) *cIO {
	c := place[cIO](a)
	c.structSize = uint32(unsafe.Sizeof(*c))
	c.length, c.read, c.release = size, cReadFn, cReleaseFn
	c.user = uintptr(cgo.NewHandle(l))
	return c
}

// Close lets go of the model; its sessions live on. Closing again does nothing.
func (m *Model) Close() error {
	runtime.SetFinalizer(m, nil)
	m.handle.close()
	return nil
}

// Info tells sizes and special tokens.
func (m *Model) Info() (ModelInfo, error) {
	c := cModelInfo{structSize: uint32(unsafe.Sizeof(cModelInfo{}))}
	err := use(&m.handle, "model info", func(p *cModel, why **cError) Status {
		return cModelGetInfo(p, &c, why)
	})
	return c.public(), err
}

// text reads a string that lives as long as the model; "" when it is closed.
func (m *Model) text(read func(*cModel) string) string {
	pointer, err := m.handle.enter("text")
	if err != nil {
		return ""
	}
	defer m.handle.leave()
	return read(pointer)
}

// Architecture is such as "llama"; "" when the file does not say.
func (m *Model) Architecture() string {
	return m.text(func(p *cModel) string { return cString(cModelArchitecture(p)) })
}

// Name is general.name of the file.
func (m *Model) Name() string {
	return m.text(func(p *cModel) string { return cString(cModelName(p)) })
}

// ChatTemplate is the file's chat template; "" when it has none.
func (m *Model) ChatTemplate() string {
	return m.text(func(p *cModel) string { return cString(cModelChatTemplate(p, nil)) })
}

// TokenText is a token as the vocabulary writes it; "" for an id out of range.
func (m *Model) TokenText(token int32) string {
	return m.text(func(p *cModel) string {
		var bytes int64
		text := cModelTokenText(p, token, &bytes)
		return cText(text, bytes)
	})
}

// TokenKind is the kind of a token; 0 for an id out of range.
func (m *Model) TokenKind(token int32) (kind TokenKind) {
	m.text(func(p *cModel) string { kind = cModelTokenKind(p, token); return "" })
	return kind
}

// TokenEnds tells whether the token ends a generation.
func (m *Model) TokenEnds(token int32) (ends bool) {
	m.text(func(p *cModel) string { ends = cModelTokenEnds(p, token) == 1; return "" })
	return ends
}

// FindToken is the id of the token that the vocabulary writes so.
func (m *Model) FindToken(text string) (token int32, found bool) {
	var memory arena
	defer memory.free()
	first, bytes := memory.text(text)
	token = -1
	m.text(func(p *cModel) string { token = cModelTokenFind(p, first, bytes); return "" })
	return token, token >= 0
}

// Tokenize gives the token ids of a text.
func (m *Model) Tokenize(text string, flags TextFlags) ([]int32, error) {
	var memory arena
	defer memory.free()
	first, bytes := memory.text(text)
	var out *cBuffer
	err := use(&m.handle, "tokenize", func(p *cModel, why **cError) Status {
		return cModelTokenize(p, first, bytes, uint32(flags), &out, why)
	})
	return takeIDs(out), err
}

// Detokenize gives the bytes of token ids.
func (m *Model) Detokenize(ids []int32, flags TextFlags) (string, error) {
	var memory arena
	defer memory.free()
	first, count := list(&memory, ids)
	var out *cBuffer
	err := use(&m.handle, "detokenize", func(p *cModel, why **cError) Status {
		return cModelDetokenize(p, first, count, uint32(flags), &out, why)
	})
	return takeText(out), err
}

func takeText(buffer *cBuffer) string {
	if buffer == nil {
		return ""
	}
	defer cBufferDestroy(buffer)
	var bytes int64
	text := cBufferText(buffer, &bytes)
	return cText(text, bytes)
}

func takeIDs(buffer *cBuffer) []int32 {
	if buffer == nil {
		return nil
	}
	defer cBufferDestroy(buffer)
	var count int64
	first := cBufferIDs(buffer, &count)
	return cList(first, count)
}
