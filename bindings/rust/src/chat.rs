//! A conversation that a chat template writes as a prompt.

use crate::raw;
use std::fmt::Write;

/// Messages, and what else a chat template gets to see.
///
/// ```
/// # let path = std::env::var("OPTIMA_TEST_MODEL").unwrap();
/// # let engine = optima::Engine::new()?;
/// # let model = optima::Model::open(&engine, &path)?;
/// # let session = optima::Session::new(&model)?;
/// let chat = optima::Chat::new().system("Be brief.").user("Why is the sky \"blue\"?");
/// let answer = session.generate(&model.chat(&chat)?.max_tokens(4))?;
/// # assert!(model.render(&chat)?.contains("Why is the sky \"blue\"?"));
/// # Ok::<(), optima::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Chat {
    messages: Vec<String>,
    tools: Option<String>,
    extra: Option<String>,
    template: Option<String>,
    flags: u32,
    now_unix_s: i64,
}

impl Chat {
    /// No messages.
    pub fn new() -> Chat {
        Chat::default()
    }

    /// Adds the system's message.
    #[must_use]
    pub fn system(self, content: &str) -> Chat {
        self.message("system", content)
    }

    /// Adds a message of the user.
    #[must_use]
    pub fn user(self, content: &str) -> Chat {
        self.message("user", content)
    }

    /// Adds an answer of the model.
    #[must_use]
    pub fn assistant(self, content: &str) -> Chat {
        self.message("assistant", content)
    }

    /// Adds a message of any role.
    #[must_use]
    pub fn message(self, role: &str, content: &str) -> Chat {
        let object = format!("{{\"role\":{},\"content\":{}}}", quoted(role), quoted(content));
        self.message_json(&object)
    }

    /// Adds a message as a JSON object, for fields beside role and content.
    #[must_use]
    pub fn message_json(mut self, object: &str) -> Chat {
        self.messages.push(object.into());
        self
    }

    /// Tools as a JSON array.
    #[must_use]
    pub fn tools_json(mut self, array: &str) -> Chat {
        self.tools = Some(array.into());
        self
    }

    /// Further template variables as a JSON object.
    #[must_use]
    pub fn extra_json(mut self, object: &str) -> Chat {
        self.extra = Some(object.into());
        self
    }

    /// Jinja source instead of the file's template.
    #[must_use]
    pub fn template(mut self, source: &str) -> Chat {
        self.template = Some(source.into());
        self
    }

    /// Does not open the assistant's turn at the end.
    #[must_use]
    pub fn no_generation_prompt(mut self) -> Chat {
        self.flags |= raw::OPTIMA_CHAT_NO_GENERATION_PROMPT;
        self
    }

    /// The time that the template sees, in seconds since 1970, instead of the present.
    #[must_use]
    pub fn now_unix_s(mut self, seconds: i64) -> Chat {
        self.now_unix_s = seconds;
        self
    }

    pub(crate) fn with_desc<R>(&self, call: impl FnOnce(&raw::optima_chat_desc) -> R) -> R {
        let messages = format!("[{}]", self.messages.join(","));
        let mut desc = raw::optima_chat_desc {
            messages_json: messages.as_ptr().cast(),
            messages_json_bytes: messages.len(),
            flags: self.flags,
            now_unix_s: self.now_unix_s,
            ..Default::default()
        };
        if let Some(tools) = &self.tools {
            desc.tools_json = tools.as_ptr().cast();
            desc.tools_json_bytes = tools.len();
        }
        if let Some(extra) = &self.extra {
            desc.extra_json = extra.as_ptr().cast();
            desc.extra_json_bytes = extra.len();
        }
        if let Some(template) = &self.template {
            desc.template_source = template.as_ptr().cast();
            desc.template_source_bytes = template.len();
        }
        call(&desc)
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{0}'..='\u{1f}' => write!(out, "\\u{:04x}", c as u32).expect("memory takes text"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_are_escaped_as_json_wants() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\u000ad\\u0001é\"");
    }
}
