#pragma once
// ModelSession: a model from file to running engine, as every command that runs one needs it.
// Opening plans the memory; start() loads the weights and starts the engine. Built and destroyed
// by main's thread; the engine may be used from any.

#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "formats/checkpoint.h"
#include "kernels/ops/device_context.h"
#include "model/model.h"
#include "plan/memory_plan.h"
#include "serve/api/api_context.h"
#include "settings.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::apps {

// The error with its file in front, unless it begins with that already.
[[nodiscard]] base::Error at_file(const std::string& path, const base::Error& error);

// What a model file gives before any weight is touched.
struct TextParts {
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;  // null: the model has none
};
// The tokenizer of a checkpoint. Errors name the file.
[[nodiscard]] base::Result<std::unique_ptr<text::Tokenizer>> make_tokenizer(
    const formats::Checkpoint& checkpoint);
// The model's template, or the one of `file` when that is not empty.
[[nodiscard]] base::Result<std::unique_ptr<text::ChatTemplate>> make_chat_template(
    const text::TokenizerSpec& spec, const std::string& file);

class ModelSession {
  public:
    // Reads the file's header, makes the threads and plans the memory; refuses what can't be run or
    // can't fit. The logger outlives the session.
    [[nodiscard]] static base::Result<std::unique_ptr<ModelSession>> open(
        const std::string& path, const ModelSettings& settings, base::Logger& logger);
    ~ModelSession();
    ModelSession(const ModelSession&) = delete;
    ModelSession& operator=(const ModelSession&) = delete;

    // What will be used, in lines for people.
    [[nodiscard]] std::string describe() const;
    // Loads and starts. `model_name` is the metrics' label, on_idle and step_log those of
    // engine::EngineParts.
    [[nodiscard]] base::Status start(const std::string& model_name,
                                     std::function<void()> on_idle = nullptr,
                                     std::unique_ptr<engine::StepLogFile> step_log = nullptr);

    // The first part of start() by itself, for who runs steps without an engine.
    [[nodiscard]] base::Result<std::unique_ptr<engine::ModelRunner>> load_runner();

    // After start().
    [[nodiscard]] engine::Engine& engine() { return *engine_; }
    [[nodiscard]] const text::Tokenizer& tokenizer() const { return *text_.tokenizer; }
    [[nodiscard]] const text::ChatTemplate* chat_template() const {
        return text_.chat_template.get();
    }
    [[nodiscard]] const api::SamplingDefaults& sampling_defaults() const { return defaults_; }
    [[nodiscard]] const plan::MemoryPlan& plan() const { return plan_; }
    [[nodiscard]] const model::ModelSizes& sizes() const { return sizes_; }
    // Ids from 0 up to it can be a prompt; the tokenizer may know fewer.
    [[nodiscard]] std::int64_t vocab_size() const { return sizes_.vocab; }
    [[nodiscard]] const kernels::DeviceContext& device() const { return device_; }
    [[nodiscard]] const formats::Checkpoint& checkpoint() const { return checkpoint_; }
    [[nodiscard]] base::MetricsRegistry& metrics() { return metrics_; }
    // The file's name without folder and ending.
    [[nodiscard]] std::string default_name() const;
    [[nodiscard]] double load_seconds() const { return load_seconds_; }

  private:
    ModelSession(ModelSettings settings, base::Logger& logger);
    [[nodiscard]] base::Status open_file(const std::string& path);
    [[nodiscard]] base::Status use_model_sampling();
    [[nodiscard]] base::Status choose_device();
    [[nodiscard]] base::Status plan_memory();
    [[nodiscard]] base::Result<plan::MemoryPlan> plan_for(std::int64_t max_positions,
                                                          bool is_explicit);
    [[nodiscard]] model::ModelLimits limits(std::int64_t max_positions) const;

    ModelSettings settings_;
    base::Logger& logger_;
    formats::Checkpoint checkpoint_;
    TextParts text_;
    api::SamplingDefaults defaults_;
    std::unique_ptr<base::ThreadTeam> team_;
    kernels::DeviceContext device_;
    model::ModelSizes sizes_;
    plan::MemoryPlan plan_;
    base::MetricsRegistry metrics_;
    double load_seconds_ = 0;
    std::unique_ptr<engine::Engine> engine_;  // last: it uses everything above
};

}  // namespace pagoda::apps
