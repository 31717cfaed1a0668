#include "formats/describe.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "text/end_of_generation.h"

namespace pagoda::formats {
namespace {

using base::Json;
using text::TokenizerSpec;

constexpr std::size_t kMaxWholeArray = 64;  // longer ones show their first items
constexpr std::size_t kMaxFirstItems = 8;
constexpr std::size_t kMaxWholeString = 512;
constexpr std::size_t kMaxStringStart = 80;

Json number(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

std::string_view item_type_name(const MetaArray& array) {
    struct Name {
        std::string_view operator()(const std::vector<bool>&) const { return "array of booleans"; }
        std::string_view operator()(const std::vector<std::int64_t>&) const {
            return "array of integers";
        }
        std::string_view operator()(const std::vector<double>&) const { return "array of floats"; }
        std::string_view operator()(const std::vector<std::string>&) const {
            return "array of strings";
        }
        std::string_view operator()(const std::vector<MetaArray>&) const {
            return "array of arrays";
        }
    };
    return std::visit(Name{}, array.items);
}

// The start of a text, cut between characters.
std::string start_of(const std::string& text, std::size_t max_bytes) {
    std::size_t length = std::min(text.size(), max_bytes);
    while (length > 0 && length < text.size() &&
           (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U)
        --length;
    return text.substr(0, length);
}

Json first_items(const MetaArray& array, std::size_t count) {
    const auto convert = [count](const auto& items) {
        Json list = Json::array();
        for (std::size_t index = 0; index < std::min(count, items.size()); ++index) {
            using Items = std::decay_t<decltype(items)>;
            if constexpr (std::is_same_v<Items, std::vector<MetaArray>>) {
                list.push_back(first_items(items[index], kMaxFirstItems));
            } else if constexpr (std::is_same_v<Items, std::vector<std::string>>) {
                list.push_back(start_of(items[index], kMaxWholeString));
            } else {
                list.push_back(typename Items::value_type(items[index]));
            }
        }
        return list;
    };
    return std::visit(convert, array.items);
}

void add_value(Json& entry, const MetaValue& value) {
    if (const auto* array = std::get_if<MetaArray>(&value)) {
        entry.set("type", item_type_name(*array));
        if (array->size() <= kMaxWholeArray) {
            entry.set("value", first_items(*array, kMaxWholeArray));
        } else {
            entry.set("count", number(array->size()))
                .set("first", first_items(*array, kMaxFirstItems));
        }
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        entry.set("type", "string");
        if (text->size() <= kMaxWholeString) {
            entry.set("value", *text);
        } else {
            entry.set("bytes", number(text->size())).set("start", start_of(*text, kMaxStringStart));
        }
    } else if (const auto* flag = std::get_if<bool>(&value)) {
        entry.set("type", "boolean").set("value", *flag);
    } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
        entry.set("type", "integer").set("value", *whole);
    } else {
        entry.set("type", "float").set("value", std::get<double>(value));
    }
}

Json describe_metadata(const Checkpoint& checkpoint) {
    Json list = Json::array();
    for (const auto& [key, value] : checkpoint.metadata) {
        Json entry = Json::object();
        entry.set("key", key);
        add_value(entry, value);
        list.push_back(std::move(entry));
    }
    return list;
}

Json describe_files(const Checkpoint& checkpoint) {
    Json list = Json::array();
    for (const CheckpointFile& file : checkpoint.files)
        list.push_back(Json::object().set("path", file.path).set("bytes", number(file.bytes)));
    return list;
}

Json describe_tensors(const Checkpoint& checkpoint) {
    Json list = Json::array();
    for (const CheckpointTensor& tensor : checkpoint.tensors) {
        Json shape = Json::array();
        for (const std::int64_t extent : tensor.view.shape) shape.push_back(extent);
        list.push_back(Json::object()
                           .set("name", tensor.name)
                           .set("type", tensor::info(tensor.view.dtype).name)
                           .set("shape", std::move(shape))
                           .set("bytes", number(tensor.view.bytes))
                           .set("file", tensor.file));
    }
    return list;
}

struct TypeTotal {
    std::string_view name;
    std::int64_t tensors = 0;
    std::int64_t values = 0;
    std::uint64_t bytes = 0;
};

std::vector<TypeTotal> count_types(const Checkpoint& checkpoint) {
    std::map<tensor::DType, TypeTotal> by_type;
    for (const CheckpointTensor& tensor : checkpoint.tensors) {
        TypeTotal& total = by_type[tensor.view.dtype];
        total.name = tensor::info(tensor.view.dtype).name;
        total.tensors += 1;
        total.values += tensor.view.num_values();
        total.bytes += tensor.view.bytes;
    }
    std::vector<TypeTotal> totals;
    totals.reserve(by_type.size());
    for (const auto& [dtype, total] : by_type) totals.push_back(total);
    std::stable_sort(totals.begin(), totals.end(),
                     [](const TypeTotal& a, const TypeTotal& b) { return a.bytes > b.bytes; });
    return totals;
}

Json describe_total(const TypeTotal& total) {
    Json entry = Json::object();
    if (!total.name.empty()) entry.set("type", total.name);
    entry.set("tensors", total.tensors)
        .set("values", total.values)
        .set("bytes", number(total.bytes));
    return entry;
}

std::string_view kind_name(text::TokenizerKind kind) {
    switch (kind) {
        case text::TokenizerKind::kByteLevelBpe:
            return "byte-level BPE";
        case text::TokenizerKind::kSentencePieceBpe:
            return "SentencePiece BPE";
        case text::TokenizerKind::kUnigram:
            return "unigram";
        case text::TokenizerKind::kWordPiece:
            return "WordPiece";
    }
    return "unknown";
}

Json describe_token(const TokenizerSpec& spec, base::TokenId id) {
    return Json::object().set("id", id).set("text", spec.tokens[static_cast<std::size_t>(id)]);
}

Json describe_special_tokens(const TokenizerSpec& spec) {
    Json special = Json::object();
    const auto add = [&](std::string_view role, const std::optional<base::TokenId>& id) {
        if (id) special.set(role, describe_token(spec, *id));
    };
    add("bos", spec.bos);
    add("eos", spec.eos);
    add("eot", spec.eot);
    add("unk", spec.unk);
    add("sep", spec.sep);
    add("pad", spec.pad);
    add("cls", spec.cls);
    add("mask", spec.mask);
    return special;
}

Json describe_end_of_generation(const TokenizerSpec& spec) {
    Json list = Json::array();
    for (const base::TokenId id : text::end_of_generation(spec))
        list.push_back(describe_token(spec, id));
    return list;
}

Json optional_flag(const std::optional<bool>& flag) {
    return flag ? Json(*flag) : Json();
}

Json describe_tokenizer(const TokenizerSpec& spec) {
    return Json::object()
        .set("kind", kind_name(spec.kind))
        .set("pre_tokenizer", spec.pre_tokenizer.empty() ? Json() : Json(spec.pre_tokenizer))
        .set("tokens", number(spec.tokens.size()))
        .set("merges", number(spec.merges.size()))
        .set("has_scores", !spec.scores.empty())
        .set("special", describe_special_tokens(spec))
        .set("end_of_generation", describe_end_of_generation(spec))
        .set("add_bos", optional_flag(spec.add_bos))
        .set("add_eos", optional_flag(spec.add_eos))
        .set("add_space_prefix", optional_flag(spec.add_space_prefix));
}

Json describe_template(const std::optional<TokenizerSpec>& spec) {
    if (!spec || (spec->chat_template.empty() && spec->named_chat_templates.empty())) return {};
    Json names = Json::array();
    for (const auto& [name, source] : spec->named_chat_templates) names.push_back(name);
    return Json::object()
        .set("bytes", number(spec->chat_template.size()))
        .set("named", std::move(names));
}

}  // namespace

Json describe(const Checkpoint& checkpoint) {
    Json types = Json::array();
    TypeTotal all;
    for (const TypeTotal& total : count_types(checkpoint)) {
        types.push_back(describe_total(total));
        all.tensors += total.tensors;
        all.values += total.values;
        all.bytes += total.bytes;
    }
    Json report = Json::object();
    report.set("path", checkpoint.path)
        .set("format", checkpoint.format)
        .set("name", checkpoint.name)
        .set("architecture", checkpoint.architecture)
        .set("files", describe_files(checkpoint))
        .set("metadata", describe_metadata(checkpoint))
        .set("tensors", describe_tensors(checkpoint))
        .set("types", std::move(types))
        .set("totals", describe_total(all))
        .set("tokenizer", checkpoint.tokenizer ? describe_tokenizer(*checkpoint.tokenizer) : Json())
        .set("chat_template", describe_template(checkpoint.tokenizer));
    return report;
}

}  // namespace pagoda::formats
