// pagoda bench kernels: matrix and attention kernels as shares of this machine's roof.

#include <algorithm>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/json.h"
#include "bench_baseline.h"
#include "bench_options.h"
#include "commands.h"
#include "kernel_bench.h"
#include "kernel_choice.h"
#include "kernels/kv_format.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace pagoda::apps {
namespace {

using base::Json;
using tensor::DType;

constexpr std::int64_t kMostRows = 8192;
constexpr std::int64_t kMostFeatures = 1 << 20;

struct Plan {
    std::vector<const kernels::Kernels*> variants;
    std::vector<DType> types;
    std::vector<MatrixShape> shapes;
    std::vector<std::int64_t> rows;
    bool has_linear = false, has_attention = false;
    int threads = 1, repeat = 5;
    bool as_json = false;
};

base::Result<std::vector<const kernels::Kernels*>> read_variants(const Arguments& arguments) {
    const auto given = arguments.value("isa");
    if (!given) {
        const auto chosen = chosen_kernels();
        if (!chosen) return chosen.error();
        return std::vector{*chosen};
    }
    const kernels::CpuFeature features = kernels::detect_cpu_features();
    std::vector<const kernels::Kernels*> variants;
    if (*given == "all") {
        for (const kernels::Kernels& variant : kernels::all_variants()) {
            if (kernels::contains(features, variant.required)) variants.push_back(&variant);
        }
        return variants;
    }
    for (const std::string& name : split_list(*given)) {
        const auto variant = kernels::choose_variant(name, features);
        if (!variant) return variant.error();
        variants.push_back(*variant);
    }
    return variants;
}

base::Result<std::vector<DType>> read_types(const Arguments& arguments) {
    const std::string given = arguments.value("types").value_or("Q4_0,Q8_0,Q4_K");
    if (given == "all")
        return std::vector<DType>(std::begin(kernels::kWeightTypes),
                                  std::end(kernels::kWeightTypes));
    std::vector<DType> types;
    for (const std::string& name : split_list(given)) {
        const auto type = tensor::dtype_from_name(name);
        const bool is_weight = type && std::ranges::find(kernels::kWeightTypes, *type) !=
                                           std::end(kernels::kWeightTypes);
        if (!is_weight)
            return base::invalid(
                fmt::format("--types: '{}' is no type of a weight; there are F32, "
                            "F16, BF16, Q4_0 and the like, or 'all'",
                            name));
        types.push_back(*type);
    }
    return types;
}

// "2048x8192": output x input features.
base::Result<MatrixShape> parse_shape(const std::string& text) {
    const std::size_t cross = text.find('x');
    if (cross == std::string::npos) {
        std::string names;
        for (const ModelShapes& model : kModelShapes) names += fmt::format("{}, ", model.name);
        return base::invalid(fmt::format(
            "--shapes: '{}' is neither the size of a model ({}all) nor OUTxIN", text, names));
    }
    const auto out = parse_integer("--shapes", text.substr(0, cross), 1, kMostFeatures);
    if (!out) return out.error();
    const auto in = parse_integer("--shapes", text.substr(cross + 1), 1, kMostFeatures);
    if (!in) return in.error();
    return MatrixShape{*out, *in};
}

base::Result<std::vector<MatrixShape>> read_shapes(const Arguments& arguments) {
    std::vector<MatrixShape> shapes;
    const auto add = [&shapes](MatrixShape shape) {
        if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
    };
    for (const std::string& name : split_list(arguments.value("shapes").value_or("1b"))) {
        bool is_model = false;
        for (const ModelShapes& model : kModelShapes) {
            if (name != model.name && name != "all") continue;
            is_model = true;
            for (const MatrixShape shape : model.shapes) add(shape);
        }
        if (is_model) continue;
        const auto shape = parse_shape(name);
        if (!shape) return shape.error();
        add(*shape);
    }
    return shapes;
}

// Models of small sizes have no K-quants for such layers either.
bool is_whole_blocks(DType type, MatrixShape shape) {
    return shape.in % tensor::info(type).block_values == 0;
}

void name_left_out(const Plan& plan) {
    for (const DType type : plan.types) {
        for (const MatrixShape shape : plan.shapes) {
            if (is_whole_blocks(type, shape)) continue;
            fmt::print(stderr, "left out: {} x {} in {}, whose blocks are {} values\n", shape.out,
                       shape.in, tensor::info(type).name, tensor::info(type).block_values);
        }
    }
}

// Every layer that would be measured must find room. Without a limit that the system tells, all do.
base::Status check_sizes(const Plan& plan) {
    const std::uint64_t limit = base::memory_limit_bytes();
    const std::int64_t most_rows = *std::ranges::max_element(plan.rows);
    for (const kernels::Kernels* variant : plan.variants) {
        for (const DType type : plan.types) {
            for (const MatrixShape shape : plan.shapes) {
                if (limit == 0 || !is_whole_blocks(type, shape)) continue;
                const std::uint64_t bytes = linear_bytes(*variant, type, shape, most_rows);
                if (bytes <= limit) continue;
                return base::invalid(fmt::format(
                    "--shapes: {}x{} in {} with {} rows takes {}, this process may use {}; ask for "
                    "a smaller one",
                    shape.out, shape.in, tensor::info(type).name, most_rows,
                    base::format_byte_size(bytes), base::format_byte_size(limit)));
            }
        }
    }
    return {};
}

base::Result<Plan> read_plan(const Arguments& arguments) {
    Plan plan;
    auto variants = read_variants(arguments);
    if (!variants) return variants.error();
    auto types = read_types(arguments);
    if (!types) return types.error();
    auto shapes = read_shapes(arguments);
    if (!shapes) return shapes.error();
    auto rows = integer_list(arguments, "rows", "1,8,32,64,512", 1, kMostRows);
    if (!rows) return rows.error();
    const auto threads = arguments.integer("threads", base::ThreadTeam::allowed_cores(), 1, 1024);
    if (!threads) return threads.error();
    const auto repeat = arguments.integer("repeat", 5, 1, 1000);
    if (!repeat) return repeat.error();
    const std::string kernels = arguments.value("kernels").value_or("linear,attention");
    for (const std::string& name : split_list(kernels)) {
        if (name != "linear" && name != "attention")
            return base::invalid(
                fmt::format("--kernels: '{}' is neither linear nor attention", name));
        (name == "linear" ? plan.has_linear : plan.has_attention) = true;
    }
    plan.variants = std::move(variants).value();
    plan.types = std::move(types).value();
    plan.shapes = std::move(shapes).value();
    plan.rows = std::move(rows).value();
    plan.threads = static_cast<int>(*threads);
    plan.repeat = static_cast<int>(*repeat);
    plan.as_json = arguments.has("json");
    if (plan.has_linear) {
        if (const auto fits = check_sizes(plan); !fits) return fits.error();
    }
    return plan;
}

std::string size_text(const KernelRow& row) {
    if (row.kernel == "linear") return fmt::format("{} x {}", row.shape.out, row.shape.in);
    return fmt::format("{} x {} at {}", row.shape.out, row.shape.in, row.depth);
}

// Prints rows as they come and keeps what the JSON document and the baseline want.
class Report {
  public:
    Report(const Plan& plan, BenchBaseline& baseline) : plan_(plan), baseline_(baseline) {}

    void begin_variant(const kernels::Kernels& variant) {
        variant_ = variant.name;
        if (plan_.as_json) return;
        fmt::print("{}, kernels {}, {} threads; shares of the nearer roof, medians of {} runs\n",
                   kernels::cpu_model_name(), variant_, plan_.threads, plan_.repeat);
        fmt::print("{:<10} {:<8} {:>18} {:>5} {:>9} {:>7} {:>8} {:>7} {:>7} {:>13}{}\n", "kernel",
                   "type", "size", "rows", "GMAC/s", "% peak", "GB/s", "% read", "share",
                   "least to most", baseline_.is_compared() ? "   change" : "");
    }

    void add(const std::vector<KernelRow>& rows) {
        for (const KernelRow& row : rows) {
            const std::string key = fmt::format("{} {} {} {} rows {}", variant_, row.kernel,
                                                row.type, size_text(row), row.rows);
            const auto before = baseline_.record(key, row.share);
            if (plan_.as_json)
                list_.push_back(json(row, before));
            else
                print(row, before);
        }
    }

    [[nodiscard]] const Json& list() const { return list_; }

  private:
    void print(const KernelRow& row, std::optional<double> before) const {
        fmt::print(
            "{:<10} {:<8} {:>18} {:>5} {:>9.1f} {:>7.1f} {:>8.2f} {:>7.1f} {:>6.1f}% "
            "{:>6.1f} {:>6.1f}",
            row.kernel, row.type, size_text(row), row.rows, row.gmac_s, row.peak_share * 100,
            row.gb_s, row.read_share * 100, row.share * 100, row.least_share * 100,
            row.most_share * 100);
        if (baseline_.is_compared()) fmt::print(" {:>8}", change_text(before, row.share));
        fmt::print("\n");
        std::fflush(stdout);
    }

    [[nodiscard]] Json json(const KernelRow& row, std::optional<double> before) const {
        Json json = Json::object();
        json.set("variant", variant_);
        json.set("kernel", row.kernel);
        json.set("type", row.type);
        json.set(row.kernel == "linear" ? "out_features" : "heads", row.shape.out);
        json.set(row.kernel == "linear" ? "in_features" : "head_dim", row.shape.in);
        if (row.depth > 0) json.set("depth", row.depth);
        json.set("rows", row.rows);
        json.set("threads", plan_.threads);
        json.set("gmac_s", row.gmac_s);
        json.set("gb_s", row.gb_s);
        json.set("peak_share", row.peak_share);
        json.set("read_share", row.read_share);
        json.set("share", row.share);
        json.set("least_share", row.least_share);
        json.set("most_share", row.most_share);
        if (before) json.set("baseline_share", *before);
        return json;
    }

    const Plan& plan_;
    BenchBaseline& baseline_;
    std::string variant_;
    Json list_ = Json::array();
};

void run_variant(const Plan& plan, const kernels::DeviceContext& device, Report& report) {
    KernelBench bench(device, plan.repeat);
    report.begin_variant(*device.kernels);
    for (const DType type : plan.types) {
        if (!plan.has_linear) break;
        for (const MatrixShape shape : plan.shapes) {
            if (is_whole_blocks(type, shape)) report.add(bench.linear(type, shape, plan.rows));
        }
    }
    if (!plan.has_attention) return;
    for (const kernels::KvDType type : kernels::kKvDTypes) report.add(bench.attention(type));
}

ExitCode bench_kernels(const Arguments& arguments) {
    const auto plan = read_plan(arguments);
    if (!plan) return bad_usage(plan.error());
    name_left_out(*plan);
    auto baseline = BenchBaseline::open(
        arguments, fmt::format("{}, {} threads", kernels::cpu_model_name(), plan->threads));
    if (!baseline) return bad_usage(baseline.error());
    auto team = base::ThreadTeam::start(plan->threads);
    if (!team) return fail(team.error());
    Report report(*plan, *baseline);
    for (const kernels::Kernels* variant : plan->variants)
        run_variant(*plan, {.kernels = variant, .team = team->get()}, report);
    if (plan->as_json) fmt::print("{}\n", report.list().dump());
    if (const auto status = baseline->finish(); !status) return fail(status.error());
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec bench_kernels_command() {
    return {.name = "bench kernels",
            .summary = "Measure matrix and attention kernels as shares of this machine's roof",
            .options = {{"types", "LIST", "weight types, or all (default: Q4_0,Q8_0,Q4_K)"},
                        {"shapes", "LIST",
                         "135m, 360m, 1b, 3b, 8b, 14b, 32b, 70b, OUTxIN, or all (default: 1b)"},
                        {"rows", "LIST", "rows of activations (default: 1,8,32,64,512)"},
                        {"kernels", "LIST", "linear, attention (default: both)"},
                        {"isa", "LIST", "variants, or all (default: the one that would be chosen)"},
                        {"threads", "N", "threads (default: the allowed cores)"},
                        {"repeat", "N", "runs, of which the median counts (default: 5)"},
                        kBaselineOption,
                        kMaxDropOption,
                        kSaveBaselineOption,
                        kJsonOption},
            .examples =
                "  pagoda bench kernels\n"
                "  pagoda bench kernels --types all --shapes 8b --rows 1,2,4,8,16,32,64,128,512\n"
                "  pagoda bench kernels --save-baseline before.json\n"
                "  pagoda bench kernels --baseline before.json --max-drop 5",
            .run = bench_kernels};
}

}  // namespace pagoda::apps
