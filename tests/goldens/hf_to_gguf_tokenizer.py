"""The tokenizer of a Hugging Face folder as GGUF metadata: byte-level BPE and BERT's WordPiece."""

import json

import gguf

# What the pre-tokeniser of tokenizer.json says -> its GGUF name.
LLAMA3_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
QWEN2_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"


def steps_of(pre):
    return pre["pretokenizers"] if pre["type"] == "Sequence" else [pre]


def pre_name(pre):
    steps = steps_of(pre)
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"] and steps[0]["use_regex"]:
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0]["individual_digits"]:
        return "smollm"
    if kinds == ["Split", "ByteLevel"]:
        split = steps[0]["pattern"].get("Regex", "")
        if split.startswith(LLAMA3_SPLIT):
            return "llama-bpe"
        if split.startswith(QWEN2_SPLIT):
            return "qwen2"
    raise SystemExit(f"pre-tokeniser {kinds} has no known name in GGUF")


def content(value):
    return value["content"] if isinstance(value, dict) else value


def chat_template(folder, settings):
    file = folder / "chat_template.jinja"
    return file.read_text() if file.exists() else settings.get("chat_template")


def begins_with_bos(whole, settings):
    """What the post-processor does, or what the settings say where it says nothing."""
    post = whole.get("post_processor") or {"type": "none"}
    for step in post["processors"] if post["type"] == "Sequence" else [post]:
        if step["type"] == "TemplateProcessing":
            return "SpecialToken" in step["single"][0]
    return bool(settings.get("add_bos_token", False))


def write_word_piece(whole, writer):
    """Words begin with a mark, what continues one does not: the other way round than in vocab."""
    norm = whole["normalizer"]
    if norm["type"] != "BertNormalizer" or whole["pre_tokenizer"]["type"] != "BertPreTokenizer":
        raise SystemExit("only BERT's form of WordPiece is converted")
    vocab = whole["model"]["vocab"]
    special = {added["content"] for added in whole["added_tokens"] if added["special"]}

    def written(token):
        if token in special:
            return token
        return token[2:] if token.startswith("##") else "\u2581" + token

    names = sorted(vocab, key=vocab.get)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("bert-bge")
    writer.add_token_list([written(name) for name in names])
    writer.add_token_types([int(gguf.TokenType.CONTROL if name in special
                                else gguf.TokenType.NORMAL) for name in names])
    for token, add in (("[CLS]", writer.add_bos_token_id), ("[SEP]", writer.add_sep_token_id),
                       ("[SEP]", writer.add_eos_token_id), ("[UNK]", writer.add_unk_token_id),
                       ("[PAD]", writer.add_pad_token_id), ("[MASK]", writer.add_mask_token_id)):
        add(vocab[token])


def write(folder, config, writer):
    whole = json.loads((folder / "tokenizer.json").read_text())
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text()) if file.exists() else {}
    model = whole["model"]
    if model["type"] == "WordPiece":
        return write_word_piece(whole, writer)
    if model["type"] != "BPE" or model.get("byte_fallback"):
        raise SystemExit("only byte-level BPE vocabularies are converted")
    tokens = {index: text for text, index in model["vocab"].items()}
    types = {index: gguf.TokenType.NORMAL for index in tokens}
    for added in whole["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = (gguf.TokenType.CONTROL if added["special"]
                              else gguf.TokenType.USER_DEFINED)
    for index in range(config["vocab_size"]):  # rows of the embedding without a token
        tokens.setdefault(index, f"[PAD{index}]")
        types.setdefault(index, gguf.TokenType.UNUSED)
    ids = {text: index for index, text in tokens.items()}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_name(whole["pre_tokenizer"]))
    writer.add_token_list([tokens[i] for i in range(len(tokens))])
    writer.add_token_types([int(types[i]) for i in range(len(tokens))])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    for key, add in (("bos", writer.add_bos_token_id), ("eos", writer.add_eos_token_id),
                     ("unk", writer.add_unk_token_id), ("pad", writer.add_pad_token_id)):
        token = content(settings.get(f"{key}_token"))
        index = config.get(f"{key}_token_id")
        index = index[0] if isinstance(index, list) else index
        if token in ids:
            index = ids[token]
        if index is not None:
            add(index)
    writer.add_add_bos_token(begins_with_bos(whole, settings))
    template = chat_template(folder, settings)
    if template is not None:
        writer.add_chat_template(template)
