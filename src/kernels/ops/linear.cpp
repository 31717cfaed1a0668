#include "kernels/ops/linear.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "base/check.h"
#include "kernels/ops/elementwise.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kItemsPerThread = 12;       // so that no thread waits long at the end
constexpr std::int64_t kMinItemBytes = 16 * 1024;  // for one row: what is worth an atomic
constexpr std::int64_t kMinItemRows = 48;
constexpr std::int64_t kRowBlockBytes = 768 * 1024;  // activations that stay in a core's L2
constexpr std::int64_t kRowBlockStep = 96;           // whole row blocks of the kernels
constexpr std::int64_t kInlineValues = 16 * 1024;    // fewer are not worth waking the team
constexpr std::int64_t kTwiceReadBytes =
    512 * 1024;  // weight bytes that a second pass finds cached

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

struct Rows {
    const std::byte* data;
    std::int64_t stride;  // bytes
    std::int64_t count;
    const std::byte* residual = nullptr;  // the second pass's rows, of the same stride

    [[nodiscard]] Rows range(std::int64_t first, std::int64_t rows) const {
        return {data + first * stride, stride, rows,
                residual == nullptr ? nullptr : residual + first * stride};
    }
};

// How one weight's outputs are cut: column ranges of whole tiles, as equal as may be, times blocks
// of rows.
struct Split {
    std::int64_t units;
    std::int64_t unit_columns;
    std::int64_t item_rows;
    std::int64_t column_items;
    std::int64_t row_items;
    std::int64_t twice_read_columns;  // of an item, at a time, where two passes read the weight
    [[nodiscard]] std::int64_t items() const { return column_items * row_items; }
    [[nodiscard]] std::int64_t first_column(std::int64_t column_item) const {
        return units * column_item / column_items * unit_columns;
    }
};

std::int64_t rows_per_item(std::int64_t rows, std::int64_t row_bytes) {
    const std::int64_t fit = kRowBlockBytes / row_bytes / kRowBlockStep * kRowBlockStep;
    const std::int64_t block = std::max(fit, kRowBlockStep);
    if (rows <= block) return std::max<std::int64_t>(rows, 1);
    const std::int64_t blocks = ceil_div(rows, block);
    return std::min(block, ceil_div(ceil_div(rows, blocks), 12) * 12);
}

// `item_bytes`: weight bytes that one item should read. `unit`: columns that are not cut apart,
// whole tiles. Where the columns are too few to occupy all threads, rows are cut finer.
Split split_of(const DeviceContext& device, const Weight& weight, const Rows& rows,
               std::int64_t item_bytes, std::int64_t unit) {
    const std::int64_t units = ceil_div(weight.out_features(), unit);
    const std::int64_t unit_bytes =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(weight.bytes()) / units);
    const std::int64_t threads = device.team->num_threads();
    Split split{};
    split.units = units;
    split.unit_columns = unit;
    // A multiple of the threads, so that each owns as many columns.
    const std::int64_t wanted = ceil_div(static_cast<std::int64_t>(weight.bytes()), item_bytes);
    split.column_items = std::min(units, ceil_div(wanted, threads) * threads);
    const std::int64_t row_items = threads == 1 ? 1 : ceil_div(2 * threads, split.column_items);
    split.item_rows = std::min(rows_per_item(rows.count, rows.stride),
                               std::max(kMinItemRows, ceil_div(rows.count, row_items)));
    split.row_items = ceil_div(rows.count, split.item_rows);
    split.twice_read_columns = std::max<std::int64_t>(1, kTwiceReadBytes / unit_bytes) * unit;
    return split;
}

Rows rows_for(const DeviceContext& device, const Weight& weight, Activations& in) {
    if (takes_int8(device, weight))
        return {in.int8_rows(device),
                static_cast<std::int64_t>(device.kernels->quantized_row_bytes(in.cols())),
                in.rows(), rounds_twice(device, weight) ? in.residual_rows(device) : nullptr};
    CHECK(in.data() != nullptr, "a weight that takes floats meets activations that are int8 alone");
    return {reinterpret_cast<const std::byte*>(in.data()),
            in.stride() * static_cast<std::int64_t>(sizeof(float)), in.rows()};
}

std::int64_t row_count(const LinearItem& item, const Activations& in) {
    return item.rows < 0 ? in.rows() - item.first_row : item.rows;
}

Rows rows_for(const DeviceContext& device, const LinearItem& item, Activations& in) {
    return rows_for(device, *item.weight, in).range(item.first_row, row_count(item, in));
}

void run_columns(const DeviceContext& device, const Weight& weight, const LinearArgs& args,
                 const std::byte* residual) {
    if (takes_bf16(device, weight)) return device.kernels->linear_bf16(args);
    if (!takes_int8(device, weight)) return device.kernels->linear_f32(args);
    device.kernels->linear_int8(args);
    if (residual == nullptr) return;
    LinearArgs second = args;
    second.in = residual;
    second.bias = nullptr;
    second.accumulate = true;
    device.kernels->linear_int8(second);
}

// Items of a row block follow each other, so that its activations stay in the cache.
void run_item(const DeviceContext& device, const LinearItem& layer, const Split& split,
              const Rows& rows, std::int64_t item) {
    const Weight& weight = *layer.weight;
    const std::int64_t first_row = item / split.column_items * split.item_rows;
    const std::int64_t begin = split.first_column(item % split.column_items);
    const std::int64_t end =
        std::min(split.first_column(item % split.column_items + 1), weight.out_features());
    const std::int64_t step = rows.residual == nullptr ? end - begin : split.twice_read_columns;
    for (std::int64_t column = begin; column < end; column += step) {
        const LinearArgs args{
            .weight = weight.view(),
            .in = rows.data + first_row * rows.stride,
            .in_stride = rows.stride,
            .rows = std::min(split.item_rows, rows.count - first_row),
            .out = layer.out.out + first_row * layer.out.stride,
            .out_stride = layer.out.stride,
            .bias = layer.out.bias,
            .accumulate = layer.out.accumulate,
            .column_begin = column,
            .column_end = std::min(column + step, end),
        };
        run_columns(device, weight, args,
                    rows.residual == nullptr ? nullptr : rows.residual + first_row * rows.stride);
    }
}

void check_fit(const DeviceContext& device, const Weight& weight, const Activations& in) {
    CHECK(
        weight.in_features() == in.cols() && weight.view().layout == device.kernels->layout,
        fmt::format("a weight of {} inputs in layout {} meets {} activations in layout {}",
                    weight.in_features(), weight.view().layout, in.cols(), device.kernels->layout));
}

// Weight bytes per item for the layers of one region together.
// `rows`: the most that one of them has.
std::int64_t item_bytes_for(const DeviceContext& device, std::span<const LinearItem> layers,
                            std::int64_t rows) {
    std::int64_t bytes = 0;
    for (const LinearItem& layer : layers)
        bytes += static_cast<std::int64_t>(layer.weight->bytes());
    const std::int64_t threads = device.team->num_threads();
    if (threads == 1) return std::max<std::int64_t>(bytes, 1);
    return std::max(kMinItemBytes / rows, bytes / (threads * kItemsPerThread));
}

}  // namespace

void linear_all(const DeviceContext& device, std::span<const LinearItem> items, Activations& in) {
    std::int64_t most_rows = 0;
    for (const LinearItem& item : items) {
        const std::int64_t rows = row_count(item, in);
        CHECK(item.first_row >= 0 && rows >= 0 && item.first_row + rows <= in.rows(),
              fmt::format("rows {} + {} of {} activations", item.first_row, rows, in.rows()));
        most_rows = std::max(most_rows, rows);
    }
    if (most_rows == 0) return;
    const std::int64_t item_bytes = item_bytes_for(device, items, most_rows);
    const auto split = [&](const LinearItem& layer, const Rows& rows) {
        return split_of(device, *layer.weight, rows, item_bytes, device.kernels->tile_columns);
    };
    std::int64_t total = 0;
    for (const LinearItem& layer : items) {
        const Weight& weight = *layer.weight;
        check_fit(device, weight, in);
        const Rows rows = rows_for(device, layer, in);
        if (rows.count > 0) total += split(layer, rows).items();
    }
    device.team->for_each(total, [&](std::int64_t item) {
        for (const LinearItem& layer : items) {
            const Rows rows = rows_for(device, layer, in);
            if (rows.count == 0) continue;
            const Split cut = split(layer, rows);
            if (item < cut.items()) return run_item(device, layer, cut, rows, item);
            item -= cut.items();
        }
    });
}

void linear(const DeviceContext& device, const Weight& weight, Activations& in,
            const LinearOut& out) {
    const LinearItem item{&weight, out};
    linear_all(device, {&item, 1}, in);
}

namespace {

// Floats of one piece of gate and of up: they stay in the core's caches beside activations and
// tiles. A row block of any height must fit with one tile's columns.
constexpr std::int64_t kGatedFloats = 16 * 1024;

// A part of a weight as a weight: whole tiles [begin, end).
PackedWeightView columns_of(const DeviceContext& device, const Weight& weight, std::int64_t begin,
                            std::int64_t end) {
    PackedWeightView part = weight.view();
    part.data +=
        static_cast<std::size_t>(begin / device.kernels->tile_columns) *
        device.kernels->packed_bytes(part.dtype, device.kernels->tile_columns, part.in_features);
    part.out_features = end - begin;
    return part;
}

// Columns [begin, end) of rows [first, first + count).
struct Piece {
    std::int64_t first, count;
    std::int64_t begin, end;
};

void run_gated_piece(const DeviceContext& device, const GatedLayer& layer, const Rows& rows,
                     const Piece& piece, QuantizeArgs rounded) {
    alignas(tensor::AlignedBuffer::kAlignment) float gate[kGatedFloats];
    alignas(tensor::AlignedBuffer::kAlignment) float up[kGatedFloats];
    const std::int64_t columns = piece.end - piece.begin;
    const auto multiply = [&](const Weight& weight, const float* bias, float* out) {
        device.kernels->linear_int8({.weight = columns_of(device, weight, piece.begin, piece.end),
                                     .in = rows.data + piece.first * rows.stride,
                                     .in_stride = rows.stride,
                                     .rows = piece.count,
                                     .out = out,
                                     .out_stride = columns,
                                     .bias = bias == nullptr ? nullptr : bias + piece.begin,
                                     .accumulate = false,
                                     .column_begin = 0,
                                     .column_end = columns});
    };
    multiply(*layer.gate, layer.gate_bias, gate);
    multiply(*layer.up, layer.up_bias, up);
    device.kernels->gate(
        {.gate = gate, .up = up, .out = gate, .count = piece.count * columns, .kind = layer.kind});
    rounded.in = gate;
    rounded.in_stride = columns;
    rounded.rows = piece.count;
    rounded.col_begin = piece.begin;
    rounded.col_end = piece.end;
    rounded.out +=
        static_cast<std::size_t>(piece.first) * device.kernels->quantized_row_bytes(rounded.cols);
    device.kernels->quantize(rounded);
}

void run_gated_int8(const DeviceContext& device, const GatedLayer& layer, Activations& in,
                    const QuantizeArgs& rounded) {
    const LinearItem both[] = {{layer.gate, {}}, {layer.up, {}}};
    const Rows rows = rows_for(device, *layer.gate, in);
    const std::int64_t item_bytes =
        std::max<std::int64_t>(1, item_bytes_for(device, both, rows.count) / 2);
    // Whole tiles, and whole groups of what reads the values.
    const std::int64_t unit = std::lcm(device.kernels->tile_columns, kActivationGroup);
    Split split = split_of(device, *layer.gate, rows, item_bytes, unit);
    split.item_rows = std::min(split.item_rows, kGatedFloats / unit);
    split.row_items = ceil_div(rows.count, split.item_rows);
    const std::int64_t step = kGatedFloats / split.item_rows / unit * unit;
    device.team->for_each(split.items(), [&](std::int64_t item) {
        const std::int64_t first = item / split.column_items * split.item_rows;
        const std::int64_t column_item = item % split.column_items;
        const std::int64_t end =
            std::min(split.first_column(column_item + 1), layer.gate->out_features());
        for (std::int64_t begin = split.first_column(column_item); begin < end; begin += step)
            run_gated_piece(device, layer, rows,
                            {.first = first,
                             .count = std::min(split.item_rows, rows.count - first),
                             .begin = begin,
                             .end = std::min(begin + step, end)},
                            rounded);
    });
}

}  // namespace

void linear_gated(const DeviceContext& device, const GatedLayer& layer, Activations& in,
                  const GatedBuffers& buffers, Activations& out) {
    const std::int64_t columns = layer.gate->out_features();
    check_fit(device, *layer.gate, in);
    check_fit(device, *layer.up, in);
    CHECK(columns == layer.up->out_features() && &in != &out, "gate and up of different shapes");
    const Weight* const weights[] = {layer.gate, layer.up, layer.reader};
    const bool is_int8 = std::all_of(std::begin(weights), std::end(weights), [&](const Weight* w) {
        return takes_int8(device, *w) && !rounds_twice(device, *w);
    });
    if (is_int8)
        return run_gated_int8(device, layer, in, out.begin_int8(device, in.rows(), columns));
    const LinearItem both[] = {
        {layer.gate, {.out = buffers.gate, .stride = columns, .bias = layer.gate_bias}},
        {layer.up, {.out = buffers.up, .stride = columns, .bias = layer.up_bias}}};
    linear_all(device, both, in);
    gate(device, {.gate = buffers.gate,
                  .up = buffers.up,
                  .out = buffers.gate,
                  .count = in.rows() * columns,
                  .kind = layer.kind});
    out.set(buffers.gate, in.rows(), columns, columns);
}

void embed(const DeviceContext& device, const tensor::TensorView& table,
           std::span<const std::int32_t> ids, float scale, float* out) {
    const std::int64_t cols = table.cols();
    const std::size_t row_bytes = tensor::row_bytes(table.dtype, cols);
    const auto num_ids = static_cast<std::int64_t>(ids.size());
    for (const std::int32_t id : ids)
        CHECK(id >= 0 && id < table.rows(),
              fmt::format("token {} is outside the embedding's {} rows", id, table.rows()));
    const auto embed_rows = [&](std::int64_t first, std::int64_t rows) {
        for (std::int64_t i = first; i < first + rows; ++i) {
            float* row = out + i * cols;
            const auto id = static_cast<std::size_t>(ids[static_cast<std::size_t>(i)]);
            device.kernels->dequantize({.dtype = table.dtype,
                                        .source = table.data + id * row_bytes,
                                        .rows = 1,
                                        .cols = cols,
                                        .out = row});
            if (scale == 1.0F) continue;
            for (std::int64_t k = 0; k < cols; ++k) row[k] *= scale;
        }
    };
    if (num_ids * cols <= kInlineValues) return embed_rows(0, num_ids);
    const std::int64_t item_rows = std::max<std::int64_t>(1, kInlineValues / 2 / cols);
    device.team->for_each(ceil_div(num_ids, item_rows), [&](std::int64_t item) {
        const std::int64_t first = item * item_rows;
        embed_rows(first, std::min(item_rows, num_ids - first));
    });
}

}  // namespace pagoda::kernels
