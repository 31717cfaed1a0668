#pragma once
// ScratchFolder: an empty folder of its own for a test that needs files; removed with what is in
// it.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace pagoda::formats {

class ScratchFolder {
  public:
    ScratchFolder() {
        std::string pattern = testing::TempDir() + "/pagoda_formats_XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    [[nodiscard]] std::string path(const std::string& name) const {
        return (folder_ / name).string();
    }
    // Writes a file and returns its path.
    [[nodiscard]] std::string file(const std::string& name,
                                   std::span<const std::byte> bytes) const {
        std::ofstream out(path(name), std::ios::binary);
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
        return path(name);
    }

  private:
    std::filesystem::path folder_;
};

}  // namespace pagoda::formats
