"""Trains the toy tokenizers (512 entries each) and writes tokenizer.json / tokenizer_config.json / tokenizer.model."""
import io
import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from texts import CORPUS

VOCAB = 512

LLAMA3_RE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_RE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K_RE = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
DEEPSEEK_RES = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]

# ---------------------------------------------------------------- chat templates (written for this data set)
T_LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' "
    "+ message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
T_CHATML = (
    "{%- if messages[0]['role'] != 'system' %}\n"
    "    {{- '<|im_start|>system\\nYou are a tiny test model.<|im_end|>\\n' }}\n"
    "{%- endif %}\n"
    "{%- if tools %}\n"
    "    {{- '<|im_start|>system\\nTools:\\n' }}\n"
    "    {%- for tool in tools %}\n"
    "        {{- (tool | tojson) + '\\n' }}\n"
    "    {%- endfor %}\n"
    "    {{- '<|im_end|>\\n' }}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>' ~ '\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
T_THINK = (
    "{%- set ns = namespace(last=0) %}\n"
    "{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}\n"
    "{%- for m in messages %}\n"
    "    {%- set content = m.content %}\n"
    "    {%- if m.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}\n"
    "        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n"
    "    {%- endif %}\n"
    "    {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "    {%- if enable_thinking is defined and enable_thinking is false %}\n"
    "        {{- '<think>\\n\\n</think>\\n\\n' }}\n"
    "    {%- endif %}\n"
    "{%- endif %}"
)
T_INST = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}"
)
T_GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
T_PHI = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
T_DEEPSEEK = (
    "{% set ns = namespace(system='') %}{% for m in messages if m['role'] == 'system' %}"
    "{% set ns.system = ns.system ~ m['content'] %}{% endfor %}{{ bos_token ~ ns.system }}"
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<\uff5cUser\uff5c>' ~ m['content'] }}"
    "{% elif m['role'] == 'assistant' %}{{ '<\uff5cAssistant\uff5c>' ~ m['content'] ~ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}"
)
T_OSS = (
    "{%- for m in messages -%}\n"
    "{%- if m.role == 'assistant' -%}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>\n"
    "{%- else -%}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>\n"
    "{%- endif -%}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"
)
T_COMMAND = (
    "{{ bos_token }}{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|>' }}"
    "{{ {'user': '<|USER_TOKEN|>', 'assistant': '<|CHATBOT_TOKEN|>', 'system': '<|SYSTEM_TOKEN|>'}[m.role] }}"
    "{{ m.content.strip() }}{{ '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"
)
T_GRANITE = (
    "{%- for message in messages %}\n"
    "{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}\n"
    "{%- if loop.last and add_generation_prompt %}\n{{- '<|start_of_role|>assistant<|end_of_role|>' }}\n{%- endif %}\n"
    "{%- endfor %}"
)
T_PLAIN = (
    "{% for m in messages %}{{ m['role'] | capitalize }}: {{ m['content'] | trim }}{{ '\n\n' }}{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

# ---------------------------------------------------------------- byte-level BPE kinds
# name -> pre-tokenizer, pre name in GGUF, special tokens, plain added tokens, bos, eos, pad, add_bos, template, has system role
KINDS = {
    "llama3": dict(pre="llama-bpe", regex=[LLAMA3_RE], ignore_merges=True,
                   special=["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
                   bos="<|begin_of_text|>", eos="<|eot_id|>", eos_all=["<|end_of_text|>", "<|eot_id|>"], add_bos=True, template=T_LLAMA3),
    "qwen2": dict(pre="qwen2", regex=[QWEN2_RE], nfc=True, special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                  bos=None, eos="<|im_end|>", eos_all=["<|im_end|>", "<|endoftext|>"], pad="<|endoftext|>", template=T_CHATML),
    "qwen3": dict(pre="qwen2", regex=[QWEN2_RE], nfc=True, special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                  plain=["<think>", "</think>"], bos=None, eos="<|im_end|>", eos_all=["<|im_end|>", "<|endoftext|>"],
                  pad="<|endoftext|>", template=T_THINK),
    "gpt2": dict(pre="gpt-2", special=["<|endoftext|>"], bos="<|endoftext|>", eos="<|endoftext|>", template=T_PLAIN),
    "refact": dict(pre="refact", digits=True, special=["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"],
                   bos="<|end_of_text|>", eos="<|end_of_text|>", template=T_GRANITE),
    "starcoder": dict(pre="starcoder", digits=True, special=["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>"],
                      bos="<|endoftext|>", eos="<|endoftext|>", template=T_PLAIN),
    "command-r": dict(pre="command-r", digits=True, nfc=True,
                      special=["<PAD>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>",
                               "<|CHATBOT_TOKEN|>", "<|SYSTEM_TOKEN|>"],
                      bos="<BOS_TOKEN>", eos="<|END_OF_TURN_TOKEN|>", pad="<PAD>", add_bos=True, template=T_COMMAND),
    "deepseek3": dict(pre="deepseek-v3", regex=DEEPSEEK_RES,
                      special=["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"],
                      bos="<\uff5cbegin\u2581of\u2581sentence\uff5c>", eos="<\uff5cend\u2581of\u2581sentence\uff5c>", add_bos=True, template=T_DEEPSEEK),
    "o200k": dict(pre="gpt-4o", regex=[O200K_RE], ignore_merges=True,
                  special=["<|startoftext|>", "<|endoftext|>", "<|return|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>"],
                  bos="<|startoftext|>", eos="<|return|>", eos_all=["<|return|>", "<|endoftext|>"], pad="<|endoftext|>", template=T_OSS),
    # sentencepiece BPE with byte fallback
    "spm-metaspace": dict(pre="default", spm="metaspace", special=["<unk>", "<s>", "</s>"], bos="<s>", eos="</s>", add_bos=True,
                          template=T_INST, no_system=True),
    "spm-legacy": dict(pre="default", spm="legacy", special=["<unk>", "<s>", "</s>"], bos="<s>", eos="</s>", add_bos=True,
                       template=T_INST, no_system=True),
    "spm-phi": dict(pre="default", spm="legacy", special=["<unk>", "<s>", "</s>"],
                    extra=["<|endoftext|>", "<|assistant|>", "<|user|>", "<|system|>", "<|end|>"],
                    bos="<s>", eos="<|endoftext|>", eos_all=["<|endoftext|>", "<|end|>"], add_bos=False, template=T_PHI),
    "spm-gemma": dict(pre="default", spm="gemma", special=["<pad>", "<eos>", "<bos>", "<unk>"],
                      extra=["<start_of_turn>", "<end_of_turn>"], bos="<bos>", eos="<eos>", eos_all=["<eos>", "<end_of_turn>"], pad="<pad>",
                      add_bos=True, template=T_GEMMA, no_system=True),
}


def _train_bytelevel(k):
    tok = Tokenizer(models.BPE(ignore_merges=k.get("ignore_merges", False)))
    if k.get("nfc"):
        tok.normalizer = normalizers.NFC()
    steps = []
    if k.get("digits"):
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    for rx in k.get("regex", []):
        steps.append(pre_tokenizers.Split(Regex(rx), behavior="isolated", invert=False))
    # without an own regex, the built-in GPT-2 split is used
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=not k.get("regex")))
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    tok.decoder = decoders.ByteLevel()
    n_added = len(k["special"]) + len(k.get("plain", []))
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - n_added, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(CORPUS, trainer)
    assert tok.get_vocab_size() == VOCAB - n_added, tok.get_vocab_size()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in k["special"]])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in k.get("plain", [])])
    if k.get("add_bos"):
        b = k["bos"]
        tok.post_processor = processors.TemplateProcessing(single=f"{b} $A", pair=f"{b} $A {b} $B",
                                                           special_tokens=[(b, tok.token_to_id(b))])
    return tok, None


def _train_spm(k):
    import sentencepiece as spm
    ids = {t: i for i, t in enumerate(k["special"])}
    names = dict(unk=("<unk>", "unk"), bos=("<bos>" if "<bos>" in ids else "<s>", "bos"),
                 eos=("<eos>" if "<eos>" in ids else "</s>", "eos"), pad=("<pad>", "pad"))
    args = {}
    for key, (piece, _) in names.items():
        args[f"{key}_id"] = ids.get(piece, -1)
        if piece in ids:
            args[f"{key}_piece"] = piece
    extra = k.get("extra", [])
    buf = io.BytesIO()
    # sentencepiece treats a line as a sentence: keep the corpus line by line
    lines = [ln for doc in CORPUS for ln in doc.replace("\r", "").split("\n") if ln.strip()]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=buf, model_type="bpe", vocab_size=VOCAB - len(extra), byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", add_dummy_prefix=k["spm"] != "gemma",
        remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True, hard_vocab_limit=True,
        num_threads=1, minloglevel=2, **args)
    blob = buf.getvalue()
    sp = spm.SentencePieceProcessor(model_proto=blob)
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    merges = []
    for piece, pid in vocab.items():
        if sp.is_control(pid) or sp.is_unknown(pid) or sp.is_byte(pid):
            continue
        local = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        local.sort(key=lambda lr: (vocab[lr[0]], vocab[lr[1]]))
        merges += [(pid, lr) for lr in local]
    merges = [lr for _, lr in sorted(merges, key=lambda m: m[0])]
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    back = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    if k["spm"] == "metaspace":
        tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
        tok.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)])
    elif k["spm"] == "legacy":
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        tok.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)])
    else:
        tok.normalizer = normalizers.Replace(" ", "\u2581")
        tok.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous", invert=False)
        tok.decoder = decoders.Sequence(back)
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in k["special"] + extra])
    assert tok.get_vocab_size() == VOCAB, tok.get_vocab_size()
    if k.get("add_bos"):
        b = k["bos"]
        tok.post_processor = processors.TemplateProcessing(single=f"{b} $A", pair=f"{b} $A {b} $B",
                                                           special_tokens=[(b, tok.token_to_id(b))])
    return tok, blob


_cache = {}


def build(kind):
    if kind not in _cache:
        k = KINDS[kind]
        _cache[kind] = _train_spm(k) if k.get("spm") else _train_bytelevel(k)
    return _cache[kind]


def write(kind, folder, max_len=512):
    """Writes the tokenizer's files; returns (bos id or None, [eos ids], pad id or None)."""
    k = KINDS[kind]
    folder = Path(folder)
    tok, blob = build(kind)
    tok.save(str(folder / "tokenizer.json"))
    if blob is not None:
        (folder / "tokenizer.model").write_bytes(blob)
    added = {}
    for t in k["special"] + k.get("extra", []):
        added[tok.token_to_id(t)] = dict(content=t, lstrip=False, normalized=False, rstrip=False, single_word=False, special=True)
    for t in k.get("plain", []):
        added[tok.token_to_id(t)] = dict(content=t, lstrip=False, normalized=False, rstrip=False, single_word=False, special=False)
    conf = dict(add_bos_token=bool(k.get("add_bos")), add_eos_token=False,
                added_tokens_decoder={str(i): added[i] for i in sorted(added)},
                bos_token=k["bos"], chat_template=k["template"], clean_up_tokenization_spaces=False, eos_token=k["eos"],
                model_max_length=max_len, pad_token=k.get("pad"), tokenizer_class="PreTrainedTokenizerFast",
                unk_token="<unk>" if k.get("spm") else None)
    (folder / "tokenizer_config.json").write_text(json.dumps(conf, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tid = tok.token_to_id
    eos = [tid(t) for t in k.get("eos_all", [k["eos"]])]
    return (tid(k["bos"]) if k["bos"] else None), eos, (tid(k["pad"]) if k.get("pad") else None)


def gguf_ids(kind, text, parse_special):
    """What a reader of the GGUF metadata alone gets: no Unicode normalization (GGUF has no field for it), and for
    sentencepiece the ids of the sentencepiece model, its leading space added at the start and after each special token."""
    import sentencepiece as spm
    k = KINDS[kind]
    t, blob = build(kind)
    if blob is None:
        if not k.get("nfc"):
            return t.encode(text, add_special_tokens=False).ids
        raw = Tokenizer.from_str(t.to_str().replace(json.dumps({"type": "NFC"}, separators=(",", ":")), "null"))
        return raw.encode(text, add_special_tokens=False).ids
    sp = spm.SentencePieceProcessor(model_proto=blob)
    special = k["special"] + k.get("extra", [])
    out, rest = [], text
    while rest:
        hits = [(rest.find(s), -len(s), s) for s in special if parse_special and s in rest]
        if not hits:
            out += sp.encode(rest)
            break
        pos, _, s = min(hits)
        if pos:
            out += sp.encode(rest[:pos])
        out.append(t.token_to_id(s))
        rest = rest[pos + len(s):]
    return out
