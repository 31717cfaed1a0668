// pagoda inspect: what a model file holds, and whether it is whole and makes sense.

#include <algorithm>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/terminal_text.h"
#include "commands.h"
#include "formats/describe.h"
#include "kernels/registry.h"
#include "model/model.h"
#include "model/registry.h"
#include "model_session.h"
#include "sampling_defaults.h"

namespace pagoda::apps {
namespace {

using base::Json;

// Whether this version can run the model, and why not.
struct Verdict {
    bool can_run = true;
    std::string reason;
};

bool is_known_architecture(std::string_view name) {
    const auto known = model::architectures();
    return std::any_of(known.begin(), known.end(), [&](const model::Architecture& architecture) {
        return architecture.name == name;
    });
}

// Hyperparameters, tensors, tokenizer and template, each by itself and against each other. An
// error means damage; what is well formed and only not offered is a verdict.
base::Result<Verdict> examine(const formats::Checkpoint& checkpoint) {
    Verdict verdict;
    const auto note = [&verdict](const base::Error& error) {
        verdict = {.can_run = false, .reason = error.message};
        return error.code == base::ErrorCode::kUnsupported;
    };
    std::unique_ptr<text::Tokenizer> tokenizer;
    if (checkpoint.tokenizer) {
        auto made = make_tokenizer(checkpoint);
        if (!made && !note(made.error())) return made.error();
        if (made) {
            tokenizer = std::move(made).value();
            const auto chat_template = make_chat_template(tokenizer->spec(), "");
            if (!chat_template && !note(chat_template.error())) return chat_template.error();
        }
    }
    if (const auto sampling = read_model_sampling(checkpoint); !sampling) return sampling.error();
    if (checkpoint.tensors.empty()) return Verdict{false, "it holds no weights"};
    if (!is_known_architecture(checkpoint.architecture)) {
        const auto spec = model::read_decoder_spec(checkpoint);
        return Verdict{false, spec ? "" : spec.error().message};
    }
    const auto variant = kernels::choose_variant("ref", kernels::CpuFeature::kNone);
    if (!variant) return variant.error();
    base::ThreadTeam team(1);
    const auto sizes = model::measure(checkpoint, {.kernels = *variant, .team = &team}, {},
                                      kernels::KvDType::kBF16);
    if (!sizes && !note(sizes.error())) return sizes.error();
    if (sizes && tokenizer && tokenizer->vocab_size() > sizes->vocab)
        return base::invalid(fmt::format("the tokenizer has {} tokens, the model's vocabulary {}",
                                         tokenizer->vocab_size(), sizes->vocab));
    return verdict;
}

std::string shape_text(const Json& shape) {
    std::string text;
    for (const Json& extent : shape.as_array())
        text += (text.empty() ? "" : " x ") + std::to_string(extent.as_int());
    return text;
}

std::uint64_t bytes_of(const Json& object) {
    return static_cast<std::uint64_t>(object.find("bytes")->as_int());
}

// A value as JSON; and a text as it is. Both may be anything that a file holds.
std::string shown(const Json& value) {
    return base::terminal_json(value.dump());
}
std::string line(const Json& object, std::string_view member) {
    return base::terminal_line(object.find(member)->as_string());
}

std::string meta_text(const Json& entry) {
    if (const Json* value = entry.find("value")) return shown(*value);
    if (const Json* start = entry.find("start"))
        return fmt::format("{}... ({} bytes)", shown(*start), bytes_of(entry));
    return fmt::format("{} items, from {}", entry.find("count")->as_int(),
                       shown(*entry.find("first")));
}

void print_tokenizer(const Json& document) {
    const Json& tokenizer = *document.find("tokenizer");
    if (tokenizer.is_null()) {
        fmt::print("\ntokenizer: none\n");
    } else {
        fmt::print("\ntokenizer: {}, pre-tokenizer {}, {} tokens, {} merges\n",
                   tokenizer.find("kind")->as_string(), shown(*tokenizer.find("pre_tokenizer")),
                   tokenizer.find("tokens")->as_int(), tokenizer.find("merges")->as_int());
        for (const auto& [name, token] : tokenizer.find("special")->as_object())
            if (!token.is_null()) fmt::print("  {:<6} {}\n", name, shown(token));
    }
    const Json& chat_template = *document.find("chat_template");
    if (chat_template.is_null())
        fmt::print("chat template: none\n");
    else
        fmt::print("chat template: {} bytes\n", bytes_of(chat_template));
}

void print_text(const Json& document, bool with_tensors) {
    fmt::print("{}\n  format        {}\n  name          {}\n  architecture  {}\n",
               line(document, "path"), document.find("format")->as_string(), line(document, "name"),
               line(document, "architecture"));
    for (const Json& file : document.find("files")->as_array())
        fmt::print("  file          {} ({})\n", line(file, "path"),
                   base::format_byte_size(bytes_of(file)));
    fmt::print("\nmetadata:\n");
    for (const Json& entry : document.find("metadata")->as_array())
        fmt::print("  {} = {}\n", line(entry, "key"), meta_text(entry));
    print_tokenizer(document);
    const Json& totals = *document.find("totals");
    fmt::print("\ntensors: {}, {} values, {}\n", totals.find("tensors")->as_int(),
               totals.find("values")->as_int(), base::format_byte_size(bytes_of(totals)));
    for (const Json& type : document.find("types")->as_array())
        fmt::print("  {:<6} {:>5} tensors, {}\n", type.find("type")->as_string(),
                   type.find("tensors")->as_int(), base::format_byte_size(bytes_of(type)));
    if (with_tensors) {
        for (const Json& tensor : document.find("tensors")->as_array())
            fmt::print("  {:<32} {:<6} {}\n", line(tensor, "name"),
                       tensor.find("type")->as_string(), shape_text(*tensor.find("shape")));
    }
    const Json& runs = *document.find("runs");
    fmt::print("\nruns here: {}\n", runs.is_bool() ? "yes" : "no: " + line(document, "runs"));
}

ExitCode inspect(const Arguments& arguments) {
    const auto checkpoint = formats::open_checkpoint(*arguments.positional("MODEL"));
    if (!checkpoint) return fail(checkpoint.error());
    const auto verdict = examine(*checkpoint);
    if (!verdict) return fail(at_file(checkpoint->path, verdict.error()));
    Json document = formats::describe(*checkpoint);
    // true, or why it can't be run.
    document.set("runs", verdict->can_run ? Json(true) : Json(verdict->reason));
    if (arguments.has("json"))
        fmt::print("{}\n", shown(document));
    else
        print_text(document, arguments.has("tensors"));
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec inspect_command() {
    return {.name = "inspect",
            .summary = "Show what a model file holds; refuses damaged ones",
            .positionals = {kModel},
            .options = {{"tensors", "", "list every tensor"}, kJsonOption},
            .examples =
                "  pagoda inspect model.gguf\n"
                "  pagoda inspect model.gguf --tensors\n"
                "  pagoda inspect model.gguf --json | jq .totals",
            .run = inspect};
}

}  // namespace pagoda::apps
