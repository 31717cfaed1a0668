#include "kernels/registry.h"

#include <array>

#include <fmt/core.h>

#include "base/check.h"
#include "kernels/tables.h"

namespace pagoda::kernels {
namespace {

// Parents before children, better before best.
constexpr std::array kTables = {
    &table_ref,
#if defined(__x86_64__)
    &table_avx2, &table_avx_vnni, &table_avx512_vnni, &table_avx512_bf16,
#endif
};

// Every operator of the table: how to ask whether a variant has it, and how to take it from its
// parent. Values that belong to an entry move with it.
struct Operator {
    std::string_view name;
    bool (*provided)(const Kernels&);
    void (*take)(Kernels& child, const Kernels& parent);
};

template <auto Entry>
constexpr Operator entry(std::string_view name) {
    return {name, [](const Kernels& kernels) { return kernels.*Entry != nullptr; },
            [](Kernels& child, const Kernels& parent) { child.*Entry = parent.*Entry; }};
}

constexpr std::array kOperators = {
    Operator{"pack", [](const Kernels& kernels) { return kernels.pack != nullptr; },
             [](Kernels& child, const Kernels& parent) {
                 child.tile_columns = parent.tile_columns;
                 child.layout = parent.layout;
                 child.layout_version = parent.layout_version;
                 child.packed_bytes = parent.packed_bytes;
                 child.pack = parent.pack;
             }},
    Operator{"quantize", [](const Kernels& kernels) { return kernels.quantize != nullptr; },
             [](Kernels& child, const Kernels& parent) {
                 child.quantized_row_bytes = parent.quantized_row_bytes;
                 child.quantize = parent.quantize;
             }},
    entry<&Kernels::linear_int8>("linear_int8"),
    entry<&Kernels::linear_f32>("linear_f32"),
    Operator{"linear_bf16", [](const Kernels& kernels) { return kernels.linear_bf16 != nullptr; },
             [](Kernels& child, const Kernels& parent) {
                 if (child.layout != parent.layout) return;
                 child.linear_bf16 = parent.linear_bf16;
                 child.multiplies_bf16 = parent.multiplies_bf16;
             }},
    entry<&Kernels::dequantize>("dequantize"),
    entry<&Kernels::rms_norm>("rms_norm"),
    entry<&Kernels::layer_norm>("layer_norm"),
    entry<&Kernels::rope>("rope"),
    entry<&Kernels::gate>("gate"),
    entry<&Kernels::soft_cap>("soft_cap"),
    entry<&Kernels::add>("add"),
    entry<&Kernels::kv_write>("kv_write"),
    Operator{"attention", [](const Kernels& kernels) { return kernels.attention != nullptr; },
             [](Kernels& child, const Kernels& parent) {
                 child.attention_scratch_floats = parent.attention_scratch_floats;
                 child.attention_rows = parent.attention_rows;
                 child.attention = parent.attention;
             }},
    entry<&Kernels::attention_merge>("attention_merge"),
    entry<&Kernels::peak_int8>("peak_int8"),
    entry<&Kernels::peak_f32>("peak_f32"),
    entry<&Kernels::peak_bf16>("peak_bf16"),
    entry<&Kernels::read_memory>("read_memory"),
};

using Variants = std::array<Kernels, kTables.size()>;

const Kernels* find(std::span<const Kernels> variants, std::string_view name) {
    for (const Kernels& variant : variants)
        if (variant.name == name) return &variant;
    return nullptr;
}

Variants resolve_tables() {
    Variants variants;
    for (std::size_t i = 0; i < kTables.size(); ++i) {
        variants[i] = *kTables[i];
        if (variants[i].parent == nullptr) continue;
        const Kernels* parent = find(std::span(variants).first(i), variants[i].parent);
        CHECK(parent != nullptr, "a variant's parent must stand before it in the list");
        for (const Operator& op : kOperators)
            if (!op.provided(variants[i])) op.take(variants[i], *parent);
    }
    return variants;
}

const Kernels* raw_table(std::string_view name) {
    for (const Kernels* table : kTables)
        if (table->name == name) return table;
    return nullptr;
}

bool runs_on(const Kernels& kernels, CpuFeature features) {
    return contains(features, kernels.required);
}

std::string names_of(CpuFeature features) {
    std::string names;
    for (const Kernels& variant : all_variants()) {
        if (!runs_on(variant, features)) continue;
        if (!names.empty()) names += ", ";
        names += variant.name;
    }
    return names;
}

// The best variant whose name starts with `prefix`, or null.
const Kernels* best_with_prefix(std::string_view prefix, CpuFeature features) {
    const Kernels* best = nullptr;
    for (const Kernels& variant : all_variants())
        if (std::string_view(variant.name).starts_with(prefix) && runs_on(variant, features) &&
            contains(features, variant.worthwhile))
            best = &variant;
    return best;
}

bool names_a_variant(std::string_view wanted) {
    return wanted == "avx512" || find(all_variants(), wanted) != nullptr;
}

}  // namespace

std::span<const Kernels> all_variants() {
    static const Variants variants = resolve_tables();
    return variants;
}

base::Result<const Kernels*> choose_variant(std::string_view wanted, CpuFeature features) {
    constexpr auto kEverything = static_cast<CpuFeature>(~0U);
    if (!wanted.empty() && !names_a_variant(wanted)) {
        return base::invalid(
            fmt::format("no kernel variant is called \"{}\"; this build has {}, and this machine "
                        "can run {}",
                        wanted, names_of(kEverything), names_of(features)),
            "PAGODA_ISA");
    }
    const Kernels* chosen = nullptr;
    if (wanted.empty() || wanted == "avx512") {
        chosen = best_with_prefix(wanted, features);
    } else {
        const Kernels* named = find(all_variants(), wanted);
        if (runs_on(*named, features)) chosen = named;
    }
    if (chosen != nullptr) return chosen;
    return base::Error{
        base::ErrorCode::kUnsupported,
        fmt::format("this machine cannot run the kernel variant \"{}\"; it can run {}", wanted,
                    names_of(features)),
        "PAGODA_ISA"};
}

std::vector<Provider> providers(const Kernels& kernels) {
    std::vector<Provider> rows;
    for (const Operator& op : kOperators) {
        if (!op.provided(kernels)) continue;
        const Kernels* table = raw_table(kernels.name);
        while (table != nullptr && !op.provided(*table) && table->parent != nullptr)
            table = raw_table(table->parent);
        CHECK(table != nullptr, "every variant descends from ref");
        rows.push_back({op.name, table->name});
    }
    return rows;
}

}  // namespace pagoda::kernels
