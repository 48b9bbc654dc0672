package optima

import (
	"context"
	"io"
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// SessionOptions says how a session works; the zero value is the default.
type SessionOptions struct {
	// ContextTokens is the most tokens it holds. 0 = the model's own context length.
	ContextTokens int
	// PrefillChunkTokens is the most prompt tokens computed at once. 0 = the engine's choice.
	PrefillChunkTokens int
	// Path says which arithmetic.
	Path Path
	// Output says what its requests are for.
	Output Output
	// KVType says how its keys and values are kept.
	KVType KVType
	// Draft is a smaller model of the same engine and vocabulary that makes the guesses of
	// requests with DraftTokens; the output is the same.
	Draft *Model
}

// Session is one conversation: a sequence of tokens and their KV. It runs one request at a time:
// another is StatusBusy. All its methods may be called from any goroutine.
type Session struct {
	handle handle[cSession]
	model  *Model

	mutex   sync.Mutex
	running map[*latch]struct{} // Of the calls that Close ends.
}

func (m *Model) newSession(op string, options *SessionOptions,
	create func(*cModel, *arena, *cSessionOptions, **cSession, **cError) Status) (*Session, error) {
	var memory arena
	defer memory.free()
	if options == nil {
		options = &SessionOptions{}
	}
	c := place[cSessionOptions](&memory)
	c.structSize = uint32(unsafe.Sizeof(*c))
	c.contextTokens = int64(options.ContextTokens)
	c.prefillChunkTokens = int64(options.PrefillChunkTokens)
	c.path, c.output, c.kvType = options.Path, options.Output, options.KVType
	if options.Draft != nil {
		draft, err := options.Draft.handle.enter(op)
		if err != nil {
			return nil, err
		}
		defer options.Draft.handle.leave()
		c.draftModel = draft
	}
	var session *cSession
	err := use(&m.handle, op, func(p *cModel, why **cError) Status {
		return create(p, &memory, c, &session, why)
	})
	if err != nil {
		return nil, err
	}
	return m.wrap(session), nil
}

func (m *Model) wrap(session *cSession) *Session {
	s := &Session{handle: newHandle("session", session, cSessionDestroy), model: m,
		running: map[*latch]struct{}{}}
	runtime.SetFinalizer(s, func(s *Session) { go s.Close() })
	return s
}

// NewSession makes an empty session; nil options are the defaults.
func (m *Model) NewSession(options *SessionOptions) (*Session, error) {
	return m.newSession("new session", options, func(p *cModel, _ *arena, c *cSessionOptions,
		out **cSession, why **cError) Status {
		return cSessionCreate(p, c, out, why)
	})
}

// RestoreSession makes a session that goes on where one of the same model, path, KV type and
// output was saved, as size bytes. StatusVersion for another, with both values; StatusFormat for
// what is damaged.
func (m *Model) RestoreSession(reader io.ReaderAt, size int64, options *SessionOptions) (*Session,
	error) {
	l := &loading{reader: reader}
	s, err := m.newSession("restore session", options, func(p *cModel, a *arena,
		c *cSessionOptions, out **cSession, why **cError) Status {
		return cSessionRestore(p, c, newIO(a, l, size), out, why)
	})
	l.rethrow()
	if l.err != nil {
		err = l.err
	}
	return s, err
}

// RestoreSessionFile is RestoreSession from what SaveFile wrote.
func (m *Model) RestoreSessionFile(path string, options *SessionOptions) (*Session, error) {
	return m.newSession("restore session", options, func(p *cModel, a *arena, c *cSessionOptions,
		out **cSession, why **cError) Status {
		text, bytes := a.text(path)
		return cSessionRestorePath(p, c, text, bytes, out, why)
	})
}

// Close cancels what runs in the session and lets go of it. Closing again does nothing.
func (s *Session) Close() error {
	runtime.SetFinalizer(s, nil)
	s.mutex.Lock()
	for l := range s.running {
		l.trigger()
	}
	s.mutex.Unlock()
	s.handle.close()
	return nil
}

// Model is the session's model.
func (s *Session) Model() *Model { return s.model }

// ContextTokens is the most tokens it holds; 0 when it is closed.
func (s *Session) ContextTokens() int {
	pointer, err := s.handle.enter("context tokens")
	if err != nil {
		return 0
	}
	defer s.handle.leave()
	return int(cSessionContextTokens(pointer))
}

// Tokens are those that it holds, as of the last finished step.
func (s *Session) Tokens() ([]int32, error) {
	var out *cBuffer
	err := use(&s.handle, "tokens", func(p *cSession, why **cError) Status {
		return cSessionTokens(p, &out, why)
	})
	return takeIDs(out), err
}

// Truncate keeps the first tokens, or all when it holds fewer; 0 forgets all. StatusBusy while a
// request runs.
func (s *Session) Truncate(tokens int) error {
	return use(&s.handle, "truncate", func(p *cSession, why **cError) Status {
		return cSessionTruncate(p, int64(tokens), why)
	})
}

// Fork makes another session of the same model and options that holds the same tokens; their
// memory is shared until one of the two writes on. An empty Prompt with RequestAppend continues
// from there. StatusBusy while a request runs.
func (s *Session) Fork() (*Session, error) {
	var out *cSession
	err := use(&s.handle, "fork", func(p *cSession, why **cError) Status {
		return cSessionFork(p, &out, why)
	})
	if err != nil {
		return nil, err
	}
	return s.model.wrap(out), nil
}

// KV tells what the session holds of KV.
func (s *Session) KV() (SessionKV, error) {
	c := cSessionKV{structSize: uint32(unsafe.Sizeof(cSessionKV{}))}
	err := use(&s.handle, "kv", func(p *cSession, why **cError) Status {
		return cSessionKVQuery(p, &c, why)
	})
	return c.public(), err
}

// saving is what the cookie of Save stands for.
type saving struct {
	carrier
	writer io.Writer
}

func (s *saving) write(from unsafe.Pointer, bytes int64) int32 {
	return verdictOf(s.run(func() error {
		_, err := s.writer.Write(unsafe.Slice((*byte)(from), bytes))
		return err
	}))
}

// Save writes the session's tokens and KV, with checksums. StatusBusy while a request runs; an
// error of the writer is returned as it is.
func (s *Session) Save(writer io.Writer) error {
	to := &saving{writer: writer}
	cookie := cgo.NewHandle(to)
	defer cookie.Delete()
	err := use(&s.handle, "save", func(p *cSession, why **cError) Status {
		return cSessionSave(p, cWriteFn, uintptr(cookie), why)
	})
	to.rethrow()
	if to.err != nil {
		return to.err
	}
	return err
}

// SaveBytes is the length of what Save would write now.
func (s *Session) SaveBytes() int64 {
	pointer, err := s.handle.enter("save bytes")
	if err != nil {
		return 0
	}
	defer s.handle.leave()
	return cSessionSaveBytes(pointer)
}

// SaveFile writes the same into a file, which is there whole or not at all.
func (s *Session) SaveFile(path string) error {
	var memory arena
	defer memory.free()
	text, bytes := memory.text(path)
	return use(&s.handle, "save file", func(p *cSession, why **cError) Status {
		return cSessionSavePath(p, text, bytes, why)
	})
}

// prepare makes a call that Close ends too; finish takes it back.
func (s *Session) prepare(ctx context.Context, op string, request *Request) (*call, error) {
	row := 0
	if len(request.LogitsPositions) > 0 {
		info, err := s.model.Info()
		if err != nil {
			return nil, err
		}
		row = int(info.Vocabulary)
	}
	c, err := newCall(ctx, op, request, row)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	s.running[c.latch] = struct{}{}
	s.mutex.Unlock()
	return c, nil
}

func (s *Session) finish(c *call) {
	s.mutex.Lock()
	delete(s.running, c.latch)
	s.mutex.Unlock()
	c.free()
}

type generateCall func(*cSession, *cRequestDesc, **cResult, **cError) Status

func (s *Session) run(ctx context.Context, op string, request *Request,
	generate generateCall) (*Result, error) {
	pointer, err := s.handle.enter(op)
	if err != nil {
		return nil, err
	}
	defer s.handle.leave()
	c, err := s.prepare(ctx, op, request)
	if err != nil {
		return nil, err
	}
	defer s.finish(c)
	if request.OnEvent != nil {
		c.desc.onEvent = cOnEventFn
	}
	if request.OnEvent != nil || request.OnLogits != nil {
		c.expect(c)
	}
	var result *cResult
	var why *cError
	status := generate(pointer, c.desc, &result, &why)
	r, err := c.outcome(ctx, op, status, result, why)
	c.rethrow()
	return r, err
}

// Generate runs one request and returns when it is done; it occupies one thread meanwhile. The
// context cancels it within one layer of one chunk, and its deadline ends it: then there are a
// Result with what there is so far and an *Error (StatusCancelled, StatusDeadline). StatusBusy
// when the session runs a request and from a callback of the same engine; StatusContextFull when
// the prompt does not fit.
func (s *Session) Generate(ctx context.Context, request *Request) (*Result, error) {
	return s.run(ctx, "generate", request, cGenerate)
}

// Embed computes the embedding of a prompt, in a session with OutputEmbedding.
func (s *Session) Embed(ctx context.Context, request *Request) (*Result, error) {
	return s.run(ctx, "embed", request, cEmbed)
}

// EmbedTexts embeds several texts, as many in one pass as fit. request says how (nil = the
// defaults); its prompt is not used. All or nothing.
func (s *Session) EmbedTexts(ctx context.Context, texts []string, request *Request) ([][]float32,
	error) {
	const op = "embed texts"
	pointer, err := s.handle.enter(op)
	if err != nil {
		return nil, err
	}
	defer s.handle.leave()
	if request == nil {
		request = &Request{}
	}
	c, err := s.prepare(ctx, op, request)
	if err != nil {
		return nil, err
	}
	defer s.finish(c)
	c.desc.prompt, c.desc.promptBytes = nil, 0
	first, lengths := c.memory.texts(texts)
	var out *cBuffer
	var why *cError
	status := cEmbedTexts(pointer, c.desc, first, lengths, uintptr(len(texts)), &out, &why)
	if err := toError(op, status, why); err != nil {
		return nil, err
	}
	defer cBufferDestroy(out)
	var count int64
	all := cList(cBufferFloats(out, &count), count)
	rows := make([][]float32, len(texts))
	width := len(all)
	if len(texts) > 0 {
		width /= len(texts)
	}
	for i := range rows {
		rows[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return rows, nil
}
