"""What make_tokenizer*.py and the tokenizer scripts of tests/long share: the file format of
tests/tokenizer/vocabulary_file.h, vocabularies from GGUF files, and strings to tokenize."""

import json
import pathlib
import random
import struct

ADD_SPECIAL, PARSE = 1, 2  # flags of a case
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value):
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def string(text):
    data = text.encode("utf-8") if isinstance(text, str) else bytes(text)
    return number(len(data)) + data


def vocabulary_bytes(v):
    """v: dict with model, pre, tokens and optionally kinds, scores, merges (pairs of texts), the
    special ids and rules, charsmap (SentencePiece's normalisation rules), user_defined_inside."""
    names = ["bos", "eos", "eot", "unknown", "pad", "add_bos", "add_eos", "add_space_prefix"]
    version = 2 if v.get("charsmap") or v.get("user_defined_inside") else 1
    out = [string(f"optima vocabulary {version}"), string(v["model"]), string(v.get("pre", ""))]
    out += [signed(v.get(name, -1)) for name in names]
    out.append(number(int(v.get("remove_extra_whitespaces", False))))
    if version == 2:
        out += [string(v.get("charsmap", b"")), number(int(v.get("user_defined_inside", False)))]
    out.append(number(len(v["tokens"])))
    out += [string(token) for token in v["tokens"]]
    kinds, scores = v.get("kinds"), v.get("scores")
    out.append(number(int(bool(kinds))))
    out += [number(kind) for kind in kinds or []]
    out.append(number(int(bool(scores))))
    out += [number(struct.unpack("<I", struct.pack("<f", score))[0]) for score in scores or []]
    index = {token: i for i, token in enumerate(v["tokens"])}
    merges = v.get("merges", [])
    out.append(number(len(merges)))
    out += [number(index[left]) + number(index[right]) for left, right in merges]
    return b"".join(out)


def cases_bytes(cases):
    """cases: (flags, text, ids)."""
    out = [number(len(cases))]
    for flags, text, ids in cases:
        out += [number(flags), string(text), number(len(ids))]
        out += [number(i) for i in ids]
    return b"".join(out)


def read_gguf_vocabulary(path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    prefix = "tokenizer.ggml."

    def get(name, default=None):
        field = fields.get(prefix + name)
        return default if field is None else field.contents()

    v = {
        "model": get("model"),
        "pre": get("pre", ""),
        "tokens": get("tokens"),
        "kinds": get("token_type"),
        "scores": get("scores"),
        "merges": [(m[0] + (rest := m[1:].split(" ", 1))[0], rest[1]) for m in get("merges", [])],
        "remove_extra_whitespaces": bool(get("remove_extra_whitespaces", False)),
    }
    for name, key in [
        ("bos", "bos_token_id"),
        ("eos", "eos_token_id"),
        ("eot", "eot_token_id"),
        ("unknown", "unknown_token_id"),
        ("pad", "padding_token_id"),
        ("add_bos", "add_bos_token"),
        ("add_eos", "add_eos_token"),
        ("add_space_prefix", "add_space_prefix"),
    ]:
        v[name] = int(get(key, -1))
    return v


def number_reader(data):
    """A function that gives the next number of `data`, and one that gives the next bytes."""
    at = 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(size):
        nonlocal at
        at += size
        return data[at - size:at]

    return read, take


HAND_MADE = [
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\t\t",
    " \n",
    "\n ",
    " \n \n  ",
    "\x00",
    "\x00\x00a",
    "a",
    " a",
    "a ",
    " a ",
    "a  b",
    "a   b",
    "a\n\n\nb",
    "a \n b",
    "a\tb",
    "a\r\n\r\nb",
    "\u00a0a\u00a0\u00a0b",
    "\u3000\u3000x",
    "\u2028\u2029x",
    "\u0085x",
    "\u180ex \u180e y",
    "\u200b \u200b",
    "\ufeffx",
    "\x1c\x1d\x1e\x1f x",
    "0",
    "12",
    "123",
    "1234",
    "12345",
    "1234567890",
    " 1 22 333 4444",
    "3.14159",
    "1,000,000",
    "2nd 3rd",
    "a1b2c3",
    "\u0661\u0662\u0663",
    "\u00b2\u00b3\u00bd",
    "\u2160\u2161",
    "\u3007\u4e00",
    "\U0001d7ce\U0001d7cf",
    " \u0967\u0968x",
    "it's I'm you're we've he'll she'd don't",
    "IT'S I'M YOU'RE WE'VE HE'LL SHE'D DON'T",
    "'s",
    "''s",
    "'S's'T't",
    "x'\u017f y'\u017ft '\u017f",
    "'\u017f",
    "\u2019s it\u2019s",
    "'re'RE'Re'rE",
    "'ll'LL'lL",
    "K\u212a'd",
    "'k\u212a",
    "\ufb06'\ufb06 '\ufb05",
    "'l",
    "'r",
    "'v",
    "'m'",
    "'dx",
    "o'clock",
    "rock'n'roll",
    "\u0130 I i \u0131",
    "\u1e9e\u00df SS ss",
    "Hello, world!",
    "Hello,  world !",
    "HelloWorld",
    "helloWORLDfoo",
    "HTTPServer2Go",
    "snake_case_name",
    "kebab-case-name",
    "CamelCase camelCase XMLHttpRequest",
    "\u01c5\u01c8 \u01f2x",
    "\u02b0\u02b1 a\u02b0",
    "\u00aa\u00ba",
    "a\u0301e\u0300",
    "\u0301",
    " \u0301a",
    "cafe\u0301 caf\u00e9",
    "\u1100\u1161\u11a8 \uac01",
    "\u0958 \u0915\u093c",
    "\u212b \u00c5 A\u030a",
    "\u2126",
    "\u1e0b\u0323",
    "\u0323\u0307d\u0307\u0323",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01",
    "\u3053\u3093\u306b\u3061\u306f",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u202eabc\u202c",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
    "\U0001f44d\U0001f3fd!",
    "\u2764\ufe0f",
    "\u2603 \u2603\u2603",
    "#\ufe0f\u20e3",
    "\U0001d54f\U0001d4d0",
    "\U000e0041",
    "\ue000",
    "\U0010ffff",
    "\ufffd\ufffe\uffff",
    "def f(x):\n    return x + 1\n",
    "for (int i = 0; i < n; ++i) {\n\t\ta[i] += b[i];\n}\n",
    '<div class="x">\n  <p>y</p>\n</div>',
    '{"a": [1, 2.5, null], "b": "\\u00e9"}',
    "SELECT * FROM t WHERE a >= 10;",
    "https://example.org/a?b=c&d=%20#e",
    "user@example.com",
    "#!/bin/sh\nset -eu\n",
    "\\begin{equation}\n  E = mc^2\n\\end{equation}",
    "// --- // *** /* */",
    "a/b//c\\d",
    "!!!???...",
    "----",
    "====\n\n",
    "/////\n/\n//x",
    "\u2581",
    "\u2581\u2581a",
    "a\u2581b \u2581 c",
    " \u2581",
    "<0x0A>",
    "<0x41>x",
    "\u0120a\u010a",
    "\u00c4 \u0100",
    " " * 7 + "x",
    " " * 31 + "x",
    " " * 32 + "x",
    " " * 35,
    "x" + " " * 64 + "y",
    " " * 100 + "\n" + " " * 9,
    "\n" * 31,
    "\n" * 35,
    "\t" * 20 + "x",
    "a" * 50,
    "a" * 1000,
    "ab" * 300,
    "A" * 77,
    "aA" * 60,
    "\u00e9" * 40,
    "\u4e00" * 60,
    "\U0001f600" * 30,
    "!" * 90,
    "-=" * 50,
    "1" * 100,
    "\x00" * 9,
    "Donaudampfschifffahrtsgesellschaftskapit\u00e4nsm\u00fctze",
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 4,
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
    "a<|endoftext|>b",
    "<|im_end|",
    "<|im_end|><|im_end|>",
    "x <|im_start|> y",
    "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
    "<bos>",
    "<eos>x",
    "<unk>",
    "<pad>",
    "<mask>",
    "<unused7>",
    "<table><tr><td>x</td></tr></table>",
    "<s>[INST] Hi [/INST] Hello</s><s>",
    "</s>",
    "<s> a",
    "<b>x</b>",
    "<b><i>",
    "<unused<unused1>",
    "<|begin_of_text|>x",
    "<|eot_id|>",
]
RANGES = [(0x20, 0x7E)] * 8 + [
    (0, 0x1F),
    (0x80, 0xFF),
    (0x100, 0x24F),
    (0x250, 0x36F),
    (0x370, 0x52F),
    (0x531, 0x6FF),
    (0x700, 0xDFF),
    (0xE00, 0x11FF),
    (0x1E00, 0x206F),
    (0x2070, 0x2BFF),
    (0x3000, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xD7FF),
    (0xE000, 0xFFFF),
    (0x10000, 0x10FFF),
    (0x11000, 0x1FFFF),
    (0x1F300, 0x1FAFF),
    (0x20000, 0x2FFFF),
    (0x10000, 0x10FFFF),
]
FRAGMENTS = [
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "'s",
    "'t",
    "'re",
    "'LL",
    "'\u017f",
    "1",
    "42",
    "2024",
    "\u0301",
    "\u200d",
    "\u00a0",
    "\u3000",
    "\x00",
    ".",
    ", ",
    "!?",
    "/",
    "_",
    "the",
    " the",
    "The",
    "ing",
    " and",
    "\u00e9",
    "\u00fc",
    "\u4e2d\u6587",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469",
    "<|im_start|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<bos>",
    "<b>",
    "</b>",
    "<|",
    "|>",
    "<unk>",
    "\u2581",
    "<0x0A>",
    "def ",
    "return",
    "();\n",
    "    ",
    "\u0627\u0644",
    "\u05d0",
    "A",
    "Z",
    "x",
]


def words_of(paths):
    words = []
    for path in paths:
        for line in pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip():
                words.append(line)
    return words


def random_strings(count, seed, lines):
    """Strings of five sorts: any characters of one script, of all scripts, glued fragments, lines
    of texts, lines with fragments put in."""
    rng = random.Random(seed)

    def character(bounds):
        while True:
            c = rng.randint(*bounds)
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    out = []
    for _ in range(count):
        sort = rng.randrange(5)
        length = rng.choice([1, 2, 3, 5, 8, 13, 21, 40])
        if sort == 0:
            bounds = rng.choice(RANGES)
            out.append("".join(character(bounds) for _ in range(length)))
        elif sort == 1:
            out.append("".join(character(rng.choice(RANGES)) for _ in range(length)))
        elif sort == 2:
            out.append(
                "".join(
                    rng.choice(FRAGMENTS) * rng.choice([1, 1, 1, 1, 2, 3, 9]) for _ in range(length)
                )
            )
        elif sort == 3:
            line = rng.choice(lines)
            begin = rng.randrange(len(line))
            out.append(line[begin : begin + rng.randint(1, 120)])
        else:
            text = list(rng.choice(lines)[:100])
            for _ in range(rng.randint(1, 6)):
                text.insert(rng.randint(0, len(text)), rng.choice(FRAGMENTS))
            out.append("".join(text))
    return out


def tokenizers_json(tokenizer):
    return json.loads(tokenizer.to_str())
