// The corpus of tests/golden/templates, whose texts Python's Jinja2 made, byte for byte.

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "text/chat_template.h"

namespace pagoda::text {
namespace {

using base::Json;

std::string read_golden(const std::string& name) {
    const char* const golden = std::getenv("PAGODA_GOLDEN");
    if (golden == nullptr) {
        ADD_FAILURE() << "PAGODA_GOLDEN must name the folder tests/golden";
        return {};
    }
    std::ifstream file(std::string(golden) + "/templates/" + name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name << " is missing from " << golden;
    return text.str();
}

Json read_json(const std::string& name) {
    auto json = Json::parse(read_golden(name));
    EXPECT_TRUE(json.ok()) << json.error().message;
    return json.ok() ? std::move(json).value() : Json::object();
}

std::string text_of(const Json& json, std::string_view key) {
    const Json* const member = json.find(key);
    return member == nullptr ? std::string() : member->as_string();
}

bool flag_of(const Json& json, std::string_view key, bool otherwise) {
    const Json* const member = json.find(key);
    return member == nullptr ? otherwise : member->as_bool();
}

// The text, or the error in a form that can't be taken for one.
std::string shown(const base::Result<std::string>& result) {
    return result.ok() ? result.value() : "ERROR: " + result.error().message;
}

void check_feature(const Json& each, const Json& variables) {
    const auto compiled = ChatTemplate::compile(text_of(each, "template"));
    if (const Json* line = each.find("refused_line")) {
        ASSERT_FALSE(compiled.ok()) << "must not compile";
        if (line->as_int() > 0) {
            EXPECT_NE(compiled.error().message.find("line "), std::string::npos)
                << compiled.error().message;
        }
        return;
    }
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    const bool is_date = text_of(each, "name") == "globals/strftime_now";
    base::Result<std::string> text = std::string();
    if (is_date) {
        ChatInput input;
        input.messages = Json::array();
        input.date_now = "2025-03-09T00:00:00";
        text = compiled.value()->render(input);
    } else {
        text = compiled.value()->render_raw(variables);
    }
    if (each.find("raises") != nullptr) {
        ASSERT_FALSE(text.ok());
        EXPECT_EQ(text.error().message, text_of(each, "raises"));
        EXPECT_EQ(text.error().code, base::ErrorCode::kInvalidArgument);
    } else if (each.find("fails") != nullptr) {
        ASSERT_FALSE(text.ok()) << "must fail, gave: " << text.value();
        EXPECT_NE(text.error().message.find("line 1: "), std::string::npos) << text.error().message;
    } else {
        EXPECT_EQ(shown(text), text_of(each, "text"));
    }
}

TEST(ChatCorpus, EveryFeatureGivesWhatPythonGives) {
    const Json corpus = read_json("features.json");
    const Json* const cases = corpus.find("cases");
    ASSERT_NE(cases, nullptr);
    EXPECT_GE(cases->as_array().size(), 200U);
    for (const Json& each : cases->as_array()) {
        SCOPED_TRACE(text_of(each, "name") + ": " + text_of(each, "template"));
        check_feature(each, *corpus.find("variables"));
    }
}

ChatInput input_of(const Json& each) {
    const auto member = [&each](std::string_view key) {
        const Json* const found = each.find(key);
        return found == nullptr ? Json() : *found;
    };
    ChatInput input;
    input.messages = member("messages");
    input.tools = member("tools");
    input.documents = member("documents");
    input.kwargs = member("kwargs");
    input.continue_final_message = flag_of(each, "continue", false);
    input.add_generation_prompt =
        flag_of(each, "add_generation_prompt", !input.continue_final_message);
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    input.date_now = "2025-03-09T00:00:00";
    return input;
}

TEST(ChatCorpus, EveryModelFamilyGivesWhatPythonGives) {
    const Json corpus = read_json("chats.json");
    const Json* const cases = corpus.find("cases");
    ASSERT_NE(cases, nullptr);
    EXPECT_GE(cases->as_array().size(), 150U);
    std::map<std::string, std::unique_ptr<ChatTemplate>> templates;
    for (const Json& each : cases->as_array()) {
        const std::string family = text_of(each, "family");
        SCOPED_TRACE(family + ": " + text_of(each, "name"));
        auto& compiled = templates[family];
        if (compiled == nullptr) {
            auto made = ChatTemplate::compile(read_golden(family + ".jinja"));
            ASSERT_TRUE(made.ok()) << made.error().message;
            compiled = std::move(made).value();
        }
        const auto text = compiled->render(input_of(each));
        if (each.find("raises") != nullptr) {
            ASSERT_FALSE(text.ok());
            EXPECT_EQ(text.error().message, text_of(each, "raises"));
        } else {
            EXPECT_EQ(shown(text), text_of(each, "text"));
        }
    }
}

}  // namespace
}  // namespace pagoda::text
