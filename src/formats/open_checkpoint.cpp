#include "formats/checkpoint.h"
#include "formats/gguf_reader.h"

namespace pagoda::formats {

base::Result<Checkpoint> open_checkpoint(const std::string& path) {
    if (path.empty()) return base::invalid("the path of the model is empty");
    return open_gguf(path);
}

}  // namespace pagoda::formats
