#include "loadgen/transfer.h"

#include <algorithm>
#include <utility>

#include <curl/curl.h>
#include <fmt/core.h>

#include "base/check.h"
#include "base/json.h"

namespace pagoda::loadgen {
namespace {

using base::Json;

constexpr std::int64_t kOk = 200;

std::string body_of(const Target& target, const Ask& ask) {
    Json body = Json::object();
    body.set("model", target.model);
    if (target.is_chat) {
        Json messages = Json::array();
        for (const Message& message : ask.messages) {
            Json object = Json::object();
            object.set("role", message.role).set("content", message.content);
            messages.push_back(std::move(object));
        }
        body.set("messages", std::move(messages));
    } else {
        std::string prompt;
        for (const Message& message : ask.messages) {
            if (!prompt.empty()) prompt += "\n\n";
            prompt += message.content;
        }
        body.set("prompt", std::move(prompt));
    }
    Json stream_options = Json::object();
    stream_options.set("include_usage", true);
    body.set("max_tokens", ask.max_tokens)
        .set("temperature", target.temperature)
        .set("stream", true)
        .set("stream_options", std::move(stream_options));
    if (target.ignores_eos) body.set("ignore_eos", true);
    return body.dump();
}

std::int64_t integer_at(const Json* object, std::string_view name) {
    const Json* value = object == nullptr ? nullptr : object->find(name);
    return value != nullptr && value->is_int() ? value->as_int() : 0;
}

// What an error of the API says, or the text itself.
std::string message_of(std::string_view text) {
    constexpr std::size_t kMostShown = 300;
    const auto document = Json::parse(text);
    const Json* error = document ? document->find("error") : nullptr;
    const Json* message = error != nullptr ? error->find("message") : nullptr;
    if (message != nullptr && message->is_string()) return message->as_string();
    if (error != nullptr && error->is_string()) return error->as_string();
    return std::string(text.substr(0, kMostShown));
}

std::string_view text_in(const Json* choice) {
    if (choice == nullptr) return {};
    const Json* holder = choice->find("delta");
    if (holder == nullptr) holder = choice;
    for (const std::string_view name : {"content", "text", "reasoning_content", "reasoning"}) {
        const Json* text = holder->find(name);
        if (text != nullptr && text->is_string() && !text->as_string().empty())
            return text->as_string();
    }
    return {};
}

template <class Value>
void set(void* handle, CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(handle, option, value);
    CHECK(code == CURLE_OK, curl_easy_strerror(code));
}

}  // namespace

std::string url_of(std::string_view base_url, std::string_view route) {
    while (base_url.ends_with('/')) base_url.remove_suffix(1);
    constexpr std::string_view kVersion = "/v1";
    if (base_url.ends_with(kVersion)) base_url.remove_suffix(kVersion.size());
    return fmt::format("{}{}/{}", base_url, kVersion, route);
}

Transfer::Transfer(const Target& target, const Ask& ask, base::TimePoint arrived_at,
                   const base::Clock& clock)
    : clock_(clock), session_(ask.session), body_(body_of(target, ask)) {
    sample_.arrived_at = arrived_at;
    sample_.sent_at = clock_.now();
    handle_ = curl_easy_init();
    CHECK(handle_ != nullptr, "libcurl has no memory");
    const auto header = [&](const std::string& line) {
        headers_ = curl_slist_append(headers_, line.c_str());
    };
    header("Content-Type: application/json");
    header("Expect:");  // no round trip before a long body
    if (!target.api_key.empty()) header("Authorization: Bearer " + target.api_key);
    const std::string url = url_of(target.url, target.is_chat ? "chat/completions" : "completions");
    set(handle_, CURLOPT_URL, url.c_str());
    set(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
    set(handle_, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(handle_, CURLOPT_HTTPHEADER, headers_);
    set(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    set(handle_, CURLOPT_POSTFIELDS, body_.c_str());
    set(handle_, CURLOPT_NOSIGNAL, 1L);
    set(handle_, CURLOPT_TCP_NODELAY, 1L);
    set(handle_, CURLOPT_PRIVATE, static_cast<void*>(this));
    set(handle_, CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(handle_, CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(target.time_limit);
    set(handle_, CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));  // NOLINT: libcurl's type
}

Transfer::~Transfer() {
    curl_easy_cleanup(handle_);
    curl_slist_free_all(headers_);
}

std::size_t Transfer::on_bytes(const char* bytes, std::size_t size, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->take({bytes, size * count});
}

// All of the bytes, or none, which ends the transfer.
std::size_t Transfer::take(std::string_view bytes) {
    long status = 0;  // NOLINT: libcurl's type
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    if (status != kOk) {
        take_refusal(bytes);
        return bytes.size();
    }
    const bool is_good = reader_.feed(bytes, [this](std::string_view data) { take_event(data); });
    if (!is_good) sample_.error = "an event of the stream is too long";
    return is_good ? bytes.size() : 0;
}

void Transfer::take_refusal(std::string_view bytes) {
    constexpr std::size_t kMostBytes = 65'536;
    refusal_ += bytes.substr(0, kMostBytes - std::min(kMostBytes, refusal_.size()));
}

void Transfer::take_event(std::string_view data) {
    if (data == "[DONE]") {
        has_ended_ = true;
        return;
    }
    const auto event = Json::parse(data);
    if (!event) {
        sample_.error = "an event of the stream is no JSON: " + event.error().message;
        return;
    }
    if (const Json* error = event->find("error"); error != nullptr && !error->is_null()) {
        sample_.error = message_of(data);
        return;
    }
    if (const Json* usage = event->find("usage"); usage != nullptr && usage->is_object()) {
        sample_.num_prompt_tokens = integer_at(usage, "prompt_tokens");
        sample_.num_output_tokens = integer_at(usage, "completion_tokens");
        sample_.num_cached_tokens =
            integer_at(usage->find("prompt_tokens_details"), "cached_tokens");
    }
    const Json* choices = event->find("choices");
    if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
    take_piece(text_in(&choices->as_array().front()));
}

void Transfer::take_piece(std::string_view text) {
    if (text.empty()) return;
    const base::TimePoint now = clock_.now();
    if (sample_.first_token_at)
        sample_.gaps.push_back(now - last_piece_at_);
    else
        sample_.first_token_at = now;
    last_piece_at_ = now;
    ++num_pieces_;
    sample_.text += text;
}

Sample Transfer::finish(std::string_view fault) {
    long status = 0;  // NOLINT: libcurl's type
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    sample_.status = status;
    sample_.ended_at = clock_.now();
    if (sample_.num_output_tokens == 0) sample_.num_output_tokens = num_pieces_;
    if (!sample_.ok()) return std::move(sample_);
    if (!fault.empty())
        sample_.error = fault;
    else if (status != kOk)
        sample_.error = fmt::format("status {}: {}", status, message_of(refusal_));
    else if (!has_ended_)
        sample_.error = "the answer is no stream with an end";
    else if (!sample_.first_token_at)
        sample_.error = "the answer has no text";
    return std::move(sample_);
}

}  // namespace pagoda::loadgen
