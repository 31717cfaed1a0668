// pagoda kernels: which variants there are, which one runs here, and who provides each operator.

#include <fmt/core.h>

#include "base/json.h"
#include "commands.h"
#include "kernel_choice.h"
#include "kernels/registry.h"

namespace pagoda::apps {
namespace {

using base::Json;

Json variants_json(kernels::CpuFeature features, const kernels::Kernels& chosen) {
    Json list = Json::array();
    for (const kernels::Kernels& variant : kernels::all_variants()) {
        Json json = Json::object();
        json.set("name", variant.name);
        json.set("parent", variant.parent == nullptr ? Json() : Json(variant.parent));
        json.set("supported", kernels::contains(features, variant.required));
        json.set("chosen", variant.name == std::string_view(chosen.name));
        list.push_back(std::move(json));
    }
    return list;
}

Json providers_json(const kernels::Kernels& chosen) {
    Json json = Json::object();
    for (const kernels::Provider& provider : kernels::providers(chosen))
        json.set(provider.op, provider.variant);
    return json;
}

void print_text(const Json& document) {
    fmt::print("cpu: {}\n", document.find("cpu")->as_string());
    for (const Json& variant : document.find("variants")->as_array())
        fmt::print("{} {:<14} {}\n", variant.find("chosen")->as_bool() ? '*' : ' ',
                   variant.find("name")->as_string(),
                   variant.find("supported")->as_bool() ? "supported here" : "not supported here");
    fmt::print("\noperators of {}:\n", document.find("chosen")->as_string());
    for (const auto& [op, variant] : document.find("operators")->as_object())
        fmt::print("  {:<26} {}\n", op, variant.as_string());
}

ExitCode show_kernels(const Arguments& arguments) {
    const auto chosen = chosen_kernels();
    if (!chosen) return bad_usage(chosen.error());
    Json document = Json::object();
    document.set("cpu", kernels::cpu_model_name());
    document.set("chosen", (*chosen)->name);
    document.set("variants", variants_json(kernels::detect_cpu_features(), **chosen));
    document.set("operators", providers_json(**chosen));
    if (arguments.has("json"))
        fmt::print("{}\n", document.dump());
    else
        print_text(document);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec kernels_command() {
    return {.name = "kernels",
            .summary = "List kernel variants and who provides each operator",
            .options = {kJsonOption},
            .examples = "  pagoda kernels\n  PAGODA_ISA=ref pagoda kernels --json",
            .run = show_kernels};
}

}  // namespace pagoda::apps
