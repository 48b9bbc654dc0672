"""Just enough C++ to check its style: what is code, comment and string, and where functions are."""

import re

OPENING = re.compile(r"//|/\*|[\"']")
def _number_ends_at(text, i):
    """Whether a ' at i separates digits: the word before it begins with a digit."""
    start = i
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_'"):
        start -= 1
    return start < i and text[start].isdigit()


def _end_of_quoted(text, i):
    """The index after the string or character constant whose quote is at i."""
    quote = text[i]
    i += 1
    while i < len(text) and text[i] != quote and text[i] != "\n":
        i += 2 if text[i] == "\\" else 1
    return min(i + 1, len(text))


def _spans(text):
    """(kind, begin, end) of all comments and strings in `text`, in order."""
    i = 0
    while match := OPENING.search(text, i):
        i = match.start()
        two = text[i:i + 2]
        if two == "//":
            end = i
            while True:  # a backslash at the end of the line continues the comment
                end = text.find("\n", end)
                end = len(text) if end < 0 else end
                if end == len(text) or text[end - 1] != "\\":
                    break
                end += 1
            yield "comment", i, end
        elif two == "/*":
            end = text.find("*/", i + 2)
            end = len(text) if end < 0 else end + 2
            yield "comment", i, end
        elif text[i] == '"':
            word = re.search(r"\w*$", text[max(0, i - 3):i]).group()
            if word in ("R", "u8R", "uR", "UR", "LR"):
                delimiter = text[i + 1:text.index("(", i)]
                end = text.index(")" + delimiter + '"', i) + len(delimiter) + 2
            else:
                end = _end_of_quoted(text, i)
            yield "string", i, end
        elif text[i] == "'" and not _number_ends_at(text, i):
            end = _end_of_quoted(text, i)
            yield "string", i, end
        else:  # a digit separator
            i += 1
            continue
        i = end


def views(text):
    """{"code", "comment", "string"}: `text` with all that is of another kind blanked.

    All views have the lines and columns of `text`. Quotes stay in the code.
    """
    def blank(piece):
        return re.sub(r"[^\n]", " ", piece)

    parts = {"code": [], "comment": [], "string": []}
    at = 0
    for kind, begin, end in _spans(text):
        between = text[at:begin]
        piece = text[begin:end]
        parts["code"] += [between, blank(piece) if kind == "comment"
                          else piece[0] + blank(piece[1:-1]) + piece[-1]]
        for other in ("comment", "string"):
            parts[other] += [blank(between), piece if kind == other else blank(piece)]
        at = end
    for kind in parts:
        parts[kind].append(text[at:] if kind == "code" else blank(text[at:]))
    return {kind: "".join(pieces) for kind, pieces in parts.items()}


def _without_directives(code):
    """Preprocessor lines, continued ones too, hold braces that pair with nothing."""
    out, continued = [], False
    for line in code.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        out.append("" if directive else line)
    return "\n".join(out)


TYPE_SCOPE = re.compile(r"^(?:typedef\s+|template\s*<.*>\s*)*(?:class|struct|union|enum)\b", re.S)
NAMESPACE_SCOPE = re.compile(r'^(?:inline\s+)?namespace\b|^extern\s*"\s*"$')
INITIALISER_LIST = re.compile(r"\)\s*(?:noexcept\s*)?:[^:].*[\w>]$", re.S)
QUALIFIED_END = re.compile(r"(?:\b(?:const|noexcept|override|final|try|mutable)|&)$")
NAME = re.compile(r"(operator\s+\w+|operator\s*[^\s\w(]+|operator\s*\(\)|[~\w]+(?:::~?\w+)*)"
                  r"\s*(?:<[^<>()]*>)?\s*\(")
NO_NAMES = {"__attribute__", "alignas", "decltype", "requires", "noexcept"}


def _name_of(head):
    match = re.match(r"(TEST(?:_[PF])?|TYPED_TEST)\s*\(\s*(\w+)\s*,\s*(\w+)", head)
    if match:
        return f"{match.group(2)}.{match.group(3)}"
    for match in NAME.finditer(head):
        if match.group(1) not in NO_NAMES:
            return re.sub(r"\s+", "", match.group(1))
    return "(lambda)"


def _scope_of(head, enclosing):
    """What the brace after `head` opens: scope (of declarations), init, function or inner."""
    if enclosing in ("function", "inner", "init"):
        return "inner"
    head = re.sub(r"\[\[.*?\]\]", "", head.strip(), flags=re.S).strip()
    if not head or NAMESPACE_SCOPE.match(head):
        return "scope"
    if head.count("(") != head.count(")"):
        return "init"  # a default argument
    is_lambda = re.search(r"\]\s*\(", head) or head.endswith("]")
    if "=" in re.sub(r"operator\s*\S+|[<>=!]=|<=>|\([^()]*\)|<[^<>]*>", "", head):
        return "function" if is_lambda else "init"
    if TYPE_SCOPE.match(head) and not head.endswith(")") and not QUALIFIED_END.search(head):
        return "scope"
    if "(" not in head:
        return "init"
    if INITIALISER_LIST.search(head) and not QUALIFIED_END.search(head):
        return "init"  # member_{...} of a constructor
    return "function"


def functions(code):
    """[(name, first line, last line)] of the outermost functions in a "code" view, lines from 1."""
    code = _without_directives(code)
    found = []
    stack = []  # (scope, name, begin of the head)
    head_begin = 0
    parentheses = 0
    for match in re.finditer(r"[(){};:]", code):
        i, char = match.start(), match.group()
        enclosing = stack[-1][0] if stack else "scope"
        if char == "(":
            parentheses += 1
        elif char == ")":
            parentheses -= 1
        elif char == "{":
            head = code[head_begin:i]
            scope = _scope_of(head, enclosing)
            stack.append((scope, head.strip(), head_begin))
            if scope != "init":
                head_begin = i + 1
        elif char == "}" and stack:
            scope, head, begin = stack.pop()
            if scope == "function":
                start = begin + len(code[begin:]) - len(code[begin:].lstrip())
                found.append((_name_of(head), code.count("\n", 0, start) + 1,
                              code.count("\n", 0, i) + 1))
            if scope != "init":
                head_begin = i + 1
        elif char == ";" and enclosing == "scope" and parentheses == 0:
            head_begin = i + 1
        elif char == ":" and enclosing == "scope" and re.search(
                r"\b(?:public|private|protected)\s*$", code[head_begin:i]):
            head_begin = i + 1
    return found
