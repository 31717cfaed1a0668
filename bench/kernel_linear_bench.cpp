// Linear layers of every variant as a share of the machine's roof, measured in the same run:
//
//   kernel_linear_bench [--threads N] [--isa NAME] [--out N] [--in K] [--types Q4_0,Q8_0] [--rows
//   1,8,512]
//
// With one thread the time is CPU time, which other programs on the machine do not lengthen; with
// more it is the wall's. One line for each type and number of rows: GMAC/s and its share of the
// peak of the arithmetic that the layer runs on (int8 or f32), GB/s of packed weights read and
// their share of the bandwidth. Many different layers take turns, so that weights come from memory
// as they do in a model.

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/thread_team.h"
#include "kernels/ops/linear.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"
#include "kernels/roof.h"

namespace {

using namespace std::string_view_literals;
using pagoda::base::ThreadTeam;
using pagoda::tensor::DType;
namespace kernels = pagoda::kernels;

struct Options {
    int threads = ThreadTeam::allowed_cores();
    std::string isa;
    std::int64_t out = 2048;
    std::int64_t in = 2048;
    std::vector<DType> types = {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K,
                                DType::kQ6_K, DType::kQ8_0, DType::kBF16};
    std::vector<std::int64_t> rows = {1, 4, 8, 32, 512};
    std::size_t weight_bytes = std::size_t{800} << 20U;  // of the layers that take turns
};

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> parts;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        parts.emplace_back(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return parts;
}

[[noreturn]] void stop(const std::string& message) {
    fmt::print(stderr, "kernel_linear_bench: {}\n", message);
    std::exit(2);
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view flag = argv[i];
        const std::string value = argv[i + 1];
        if (flag == "--threads"sv) {
            options.threads = std::stoi(value);
        } else if (flag == "--isa"sv) {
            options.isa = value;
        } else if (flag == "--out"sv) {
            options.out = std::stoll(value);
        } else if (flag == "--in"sv) {
            options.in = std::stoll(value);
        } else if (flag == "--rows"sv) {
            options.rows.clear();
            for (const std::string& part : split(value)) options.rows.push_back(std::stoll(part));
        } else if (flag == "--types"sv) {
            options.types.clear();
            for (const std::string& part : split(value)) {
                const auto dtype = pagoda::tensor::dtype_from_name(part);
                if (!dtype) stop("unknown type " + part);
                options.types.push_back(*dtype);
            }
        } else {
            stop("unknown flag " + std::string(flag));
        }
    }
    return options;
}

double seconds_now(bool cpu_time) {
    timespec now{};
    clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Layers of one shape that together exceed the caches.
struct Layers {
    std::vector<kernels::Weight> weights;
    std::size_t bytes = 0;

    Layers(const kernels::DeviceContext& device, DType dtype, const Options& options) {
        const std::vector<std::byte> source =
            kernels::random_weight(dtype, options.out, options.in, 1);
        while (bytes < options.weight_bytes && weights.size() < 400) {
            weights.emplace_back(
                device, pagoda::tensor::TensorView{
                            dtype, {options.out, options.in}, source.data(), source.size()});
            bytes += weights.back().bytes();
        }
    }
};

// Seconds of one layer, the best of a few passes over as many layers as take a fair time.
double seconds_per_layer(const kernels::DeviceContext& device, const Layers& layers,
                         std::int64_t rows, const Options& options) {
    const std::vector<float> x = kernels::random_rows(rows, options.in, 2);
    std::vector<float> out(static_cast<std::size_t>(rows * options.out));
    kernels::Activations in(device, rows, options.in);
    in.set(x.data(), rows, options.in, options.in);  // rounded once: several layers share it
    const std::size_t used =
        rows >= 32 ? std::min<std::size_t>(layers.weights.size(), 16) : layers.weights.size();
    double best = 1e9;
    for (int pass = 0; pass < 5; ++pass) {
        const double begin = seconds_now(options.threads == 1);
        for (std::size_t i = 0; i < used; ++i) {
            kernels::linear(device, layers.weights[i], in,
                            {.out = out.data(), .stride = options.out});
        }
        const double seconds = seconds_now(options.threads == 1) - begin;
        best = std::min(best, seconds / static_cast<double>(used));
    }
    return best;
}

void report(const kernels::DeviceContext& device, const Options& options,
            const kernels::Roof& roof) {
    for (const DType dtype : options.types) {
        const Layers layers(device, dtype, options);
        const double layer_bytes =
            static_cast<double>(layers.bytes) / static_cast<double>(layers.weights.size());
        const double peak =
            (pagoda::tensor::info(dtype).is_quantized ? roof.int8_gops : roof.f32_gflops) / 2;
        for (const std::int64_t rows : options.rows) {
            const double seconds = seconds_per_layer(device, layers, rows, options);
            const double gmac =
                static_cast<double>(rows * options.out * options.in) / seconds * 1e-9;
            const double gb = layer_bytes / seconds * 1e-9;
            fmt::print("{:<8} {:>4} {:>9.1f} {:>6.1f} {:>8.2f} {:>6.1f} {:>10.1f}\n",
                       pagoda::tensor::info(dtype).name, rows, gmac, 100 * gmac / peak, gb,
                       100 * gb / roof.read_gb_s, seconds * 1e6);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const auto chosen = kernels::choose_variant(options.isa, kernels::detect_cpu_features());
    if (!chosen.ok()) stop(chosen.error().message);
    ThreadTeam team(options.threads);
    const kernels::DeviceContext device{*chosen, &team};
    const kernels::Roof roof = kernels::measure_roof(device, true);
    fmt::print("{}: {}, {} threads, {} x {}\n", kernels::cpu_model_name(), (*chosen)->name,
               options.threads, options.out, options.in);
    fmt::print("roof: int8 {:.0f} Gop/s, bf16 {:.0f} Gflop/s, f32 {:.0f} Gflop/s, {:.1f} GB/s\n",
               roof.int8_gops, roof.bf16_gflops, roof.f32_gflops, roof.read_gb_s);
    fmt::print("{:<8} {:>4} {:>9} {:>6} {:>8} {:>6} {:>10}\n", "type", "rows", "GMAC/s", "%peak",
               "GB/s", "%read", "us");
    report(device, options, roof);
    return 0;
}
