#include "text_input.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

TEST(TextInput, GivesEveryByteOfAFile) {
    const std::string path =
        (std::filesystem::path(testing::TempDir()) / "pagoda_text_input").string();
    std::string text = std::string("a\0\xff\r\n", 5);
    text.append(200'000, 'x');
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(read_text_file(path).value(), text);
    std::ofstream(path, std::ios::binary) << "";
    EXPECT_EQ(read_text_file(path).value(), "");
    std::filesystem::remove(path);
}

TEST(TextInput, SaysWhyAFileCanNotBeRead) {
    EXPECT_EQ(read_text_file("/nowhere/x").error().message,
              "/nowhere/x: cannot be read: No such file or directory");
    EXPECT_EQ(read_text_file("/").error().message, "/: cannot be read: Is a directory");
}

}  // namespace
}  // namespace pagoda::apps
