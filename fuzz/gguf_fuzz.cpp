// Any bytes as a GGUF file: refused with one line, or a checkpoint that can be described, read to
// the last byte of its tensors, written, and read again with the same bytes of metadata.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "formats/describe.h"
#include "formats/gguf_parser.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"

namespace {

using namespace pagoda;

void check_one_line(const base::Error& error) {
    CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos, error.message);
}

// What was read is written; what was written is read as the same file.
void check_round_trip(const formats::GgufFile& file) {
    const auto written = formats::encode_gguf(file);
    CHECK(written.ok(), written.error().message);
    const auto again = formats::parse_gguf(*written, "written");
    CHECK(again.ok(), again.error().message);
    const auto twice = formats::encode_gguf(*again);
    CHECK(twice.ok() && *twice == *written, "a second writing differs from the first");
}

void read_everything(const formats::Checkpoint& checkpoint) {
    for (const formats::CheckpointTensor& tensor : checkpoint.tensors) {
        const volatile std::byte* data = tensor.view.data;
        for (std::size_t index = 0; index < tensor.view.bytes; ++index)
            static_cast<void>(data[index]);
    }
    CHECK(base::Json::parse(formats::describe(checkpoint).dump()).ok(),
          "the description is no JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto file = formats::parse_gguf(bytes, "fuzz");
    if (!file.ok()) {
        check_one_line(file.error());
        return 0;
    }
    check_round_trip(*file);
    const auto checkpoint = formats::checkpoint_from_gguf(bytes, "fuzz");
    if (checkpoint.ok()) {
        read_everything(*checkpoint);
    } else {
        check_one_line(checkpoint.error());
    }
    return 0;
}
