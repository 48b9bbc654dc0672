package optima

import (
	"encoding/json"
	"fmt"
	"time"
	"unsafe"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Chat is a conversation to be written as a prompt.
type Chat struct {
	Messages []Message
	// MessagesJSON is a JSON array of message objects, for what Message has no field for. "" =
	// Messages are used.
	MessagesJSON string
	// Tools becomes a JSON array of tools. nil = none.
	Tools any
	// Extra holds further variables of the template.
	Extra map[string]any
	// Template is Jinja source. "" = that of the model file.
	Template string
	Flags    ChatFlags
	// Now is the time that the template sees. Zero = the present.
	Now time.Time
}

// Render writes a conversation as a prompt by the model's chat template. StatusUnsupported when
// the file has none, StatusArg for a bad one, with line and column.
func (m *Model) Render(chat Chat) (string, error) {
	var memory arena
	defer memory.free()
	c := place[cChatDesc](&memory)
	c.structSize = uint32(unsafe.Sizeof(*c))
	messages := chat.MessagesJSON
	for _, part := range []struct {
		value any
		given bool
		text  *string
		first **byte
		bytes *uintptr
	}{
		{chat.Messages, messages == "", &messages, &c.messagesJSON, &c.messagesJSONBytes},
		{chat.Tools, chat.Tools != nil, new(string), &c.toolsJSON, &c.toolsJSONBytes},
		{chat.Extra, chat.Extra != nil, new(string), &c.extraJSON, &c.extraJSONBytes},
	} {
		if part.given {
			text, err := json.Marshal(part.value)
			if err != nil {
				return "", fmt.Errorf("optima: render: %w", err)
			}
			*part.text = string(text)
		}
		*part.first, *part.bytes = memory.optional(*part.text)
	}
	c.templateSource, c.templateSourceBytes = memory.optional(chat.Template)
	c.flags = uint32(chat.Flags)
	if !chat.Now.IsZero() {
		c.nowUnixS = chat.Now.Unix()
	}
	var out *cBuffer
	err := use(&m.handle, "render", func(p *cModel, why **cError) Status {
		return cModelRender(p, c, &out, why)
	})
	return takeText(out), err
}
