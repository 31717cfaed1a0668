#include "model_session.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "base/byte_size.h"
#include "base/clock.h"
#include "base/cpu_topology.h"
#include "base/terminal_text.h"
#include "engine/loader.h"
#include "kernel_choice.h"
#include "kernels/registry.h"
#include "kv/store/kv_store.h"
#include "progress.h"
#include "sampling_defaults.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::int64_t kMaxLogitRows = 64;   // rows of logits that are made at once, at most
constexpr std::int64_t kLeastContext = 512;  // no shorter context is tried to make a model fit
constexpr auto kQueueBytes = static_cast<std::int64_t>(plan::kProcessShares.queue_bytes);

// What makes this machine slower than it looks.
void warn_of_machine(const kernels::Kernels& chosen, base::Logger& logger) {
    const std::vector<int> cpus = base::allowed_cpus();
    if (cpus.size() == 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1)
        logger.warning("the affinity mask allows one processor of this machine alone");
    if (const int nodes = base::num_memory_nodes(cpus, ""); nodes > 1)
        logger.warning(fmt::format(
            "the allowed processors lie on {} memory nodes, and weights are not placed by node; "
            "where a model fits into one, numactl --cpunodebind=0 --membind=0 may be faster",
            nodes));
    if (const auto warning = slow_kernels_warning(chosen, kernels::detect_cpu_features()))
        logger.warning(*warning);
}

}  // namespace

base::Error at_file(const std::string& path, const base::Error& error) {
    const std::string start = path + ": ";
    return error.message.starts_with(start) ? error
                                            : Error{error.code, start + error.message, error.param};
}

base::Result<std::unique_ptr<text::Tokenizer>> make_tokenizer(
    const formats::Checkpoint& checkpoint) {
    if (!checkpoint.tokenizer)
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: holds no tokenizer", checkpoint.path)};
    auto tokenizer = text::Tokenizer::create(*checkpoint.tokenizer);
    if (!tokenizer) return at_file(checkpoint.path, tokenizer.error());
    return tokenizer;
}

base::Result<std::unique_ptr<text::ChatTemplate>> make_chat_template(
    const text::TokenizerSpec& spec, const std::string& file) {
    if (file.empty()) {
        if (spec.chat_template.empty() && spec.named_chat_templates.empty())
            return std::unique_ptr<text::ChatTemplate>();
        auto compiled = text::ChatTemplate::compile(spec.chat_template, spec.named_chat_templates);
        if (!compiled) return at_file("chat template", compiled.error());
        return compiled;
    }
    const auto source = read_text_file(file);
    if (!source) return source.error();
    if (source->empty()) return base::invalid(fmt::format("{}: the chat template is empty", file));
    auto compiled = text::ChatTemplate::compile(*source);
    if (!compiled) return at_file(file, compiled.error());
    return compiled;
}

ModelSession::ModelSession(ModelSettings settings, base::Logger& logger)
    : settings_(std::move(settings)), logger_(logger) {}

ModelSession::~ModelSession() = default;

base::Result<std::unique_ptr<ModelSession>> ModelSession::open(const std::string& path,
                                                               const ModelSettings& settings,
                                                               base::Logger& logger) {
    std::unique_ptr<ModelSession> session(new ModelSession(settings, logger));
    if (const auto status = session->open_file(path); !status) return status.error();
    if (const auto status = session->choose_device(); !status) return status.error();
    if (const auto status = session->plan_memory(); !status) return status.error();
    return session;
}

base::Status ModelSession::open_file(const std::string& path) {
    auto checkpoint = formats::open_checkpoint(path);
    if (!checkpoint) return std::move(checkpoint).error();
    checkpoint_ = std::move(checkpoint).value();
    if (checkpoint_.tensors.empty())
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: holds a vocabulary and no weights", path)};
    auto tokenizer = make_tokenizer(checkpoint_);
    if (!tokenizer) return std::move(tokenizer).error();
    text_.tokenizer = std::move(tokenizer).value();
    auto chat_template = make_chat_template(text_.tokenizer->spec(), settings_.chat_template_file);
    if (!chat_template) {
        // Of a template in a file of its own the error names that one already.
        const bool is_of_model = settings_.chat_template_file.empty();
        return is_of_model ? at_file(path, chat_template.error()) : chat_template.error();
    }
    text_.chat_template = std::move(chat_template).value();
    return settings_.uses_model_sampling ? use_model_sampling() : base::Status();
}

base::Status ModelSession::use_model_sampling() {
    const auto sampling = read_model_sampling(checkpoint_);
    if (!sampling) return at_file(checkpoint_.path, sampling.error());
    defaults_ = sampling->defaults;
    if (sampling->not_applied.empty()) return {};
    std::string keys;
    for (const std::string& key : sampling->not_applied) keys += (keys.empty() ? "" : ", ") + key;
    logger_.warning("sampling settings of the model that are not applied: " +
                    base::terminal_line(keys));
    return {};
}

base::Status ModelSession::choose_device() {
    const int allowed = base::ThreadTeam::allowed_cores();
    const int threads = settings_.threads.value_or(allowed);
    if (threads > allowed)
        logger_.warning(
            fmt::format("threads is {}, affinity and CPU quota allow {} cores; more threads than "
                        "cores are slow",
                        threads, allowed));
    warn_of_machine(*settings_.kernels, logger_);
    auto team = base::ThreadTeam::start(threads);
    if (!team) return std::move(team).error();
    team_ = std::move(team).value();
    device_ = {.kernels = settings_.kernels,
               .team = team_.get(),
               .activation_mode = settings_.activation_mode};
    return {};
}

model::ModelLimits ModelSession::limits(std::int64_t max_positions) const {
    return {.max_rows = std::max(settings_.budget.max_num_batched_tokens, std::int64_t{1}),
            .max_sequences = settings_.budget.max_num_seqs,
            .max_positions = max_positions,
            .max_logit_rows = kMaxLogitRows};
}

base::Result<plan::MemoryPlan> ModelSession::plan_for(std::int64_t max_positions,
                                                      bool is_explicit) {
    auto sizes = model::measure(checkpoint_, device_, limits(max_positions), settings_.kv_dtype);
    if (!sizes) return at_file(checkpoint_.path, sizes.error());
    plan::MemoryBudget budget = settings_.budget;
    budget.limit_bytes = base::memory_limit_bytes();
    budget.in_use_bytes = base::resident_bytes();
    if (is_explicit) budget.max_model_len = max_positions;
    sizes_ = std::move(sizes).value();
    return plan::make_memory_plan(sizes_, budget);
}

// The workspace grows with the longest sequence, and the longest sequence is what fits beside the
// workspace: planned for the model's context first, then for what came out.
base::Status ModelSession::plan_memory() {
    const auto sizes = model::measure(checkpoint_, device_, limits(1), settings_.kv_dtype);
    if (!sizes) return at_file(checkpoint_.path, sizes.error());
    if (text_.tokenizer->vocab_size() > sizes->vocab)
        return base::invalid(
            fmt::format("{}: the tokenizer has {} tokens, the model's vocabulary {}",
                        checkpoint_.path, text_.tokenizer->vocab_size(), sizes->vocab));
    const bool is_explicit = settings_.budget.max_model_len.has_value();
    std::int64_t positions = settings_.budget.max_model_len.value_or(sizes->context_length);
    positions = std::min(positions, std::max(sizes->context_length, std::int64_t{1}));
    auto plan = plan_for(positions, false);
    bool is_lowered = false;
    while (!plan && !is_explicit && positions / 2 >= kLeastContext &&
           plan.error().code == ErrorCode::kResourceExhausted) {
        positions /= 2;
        is_lowered = true;
        plan = plan_for(positions, true);
    }
    if (plan && plan->max_model_len < positions) {
        is_lowered = true;
        plan = plan_for(plan->max_model_len, true);
    }
    if (!plan) return std::move(plan).error();
    plan_ = std::move(plan).value();
    plan_.max_model_len_lowered = is_lowered;
    settings_.scheduler.max_model_len = plan_.max_model_len;
    settings_.scheduler.groups = engine::scheduler_groups(sizes_.groups, plan_.group_blocks);
    return sched::validate(settings_.scheduler);
}

std::string ModelSession::describe() const {
    const int nodes = base::num_memory_nodes(base::allowed_cpus(), "");
    return fmt::format(
        "model: {} ({}, {}, {})\n"
        "kernels: {} on {}, {} threads {} on {} memory node{}, activations {}, KV cache {}\n{}",
        base::terminal_line(checkpoint_.name), base::terminal_line(checkpoint_.architecture),
        checkpoint_.format, base::format_byte_size(checkpoint_.tensor_bytes()),
        device_.kernels->name, kernels::cpu_model_name(), team_->num_threads(),
        team_->is_bound() ? "bound to processors" : "placed by the system", nodes,
        nodes == 1 ? "" : "s",
        device_.activation_mode == kernels::ActivationMode::kF32 ? "f32" : "auto",
        kv::kv_dtype_name(settings_.kv_dtype), plan_.describe());
}

std::string ModelSession::default_name() const {
    return std::filesystem::path(checkpoint_.path).stem().string();
}

base::Result<std::unique_ptr<engine::ModelRunner>> ModelSession::load_runner() {
    engine::LoadOptions options{.limits = limits(plan_.max_model_len),
                                .kv_dtype = settings_.kv_dtype,
                                .group_blocks = plan_.group_blocks,
                                .load_bytes = plan_.weights_bytes + plan_.workspace_bytes};
    std::optional<Progress> loading, writing;  // one after the other
    loading.emplace("loading");
    options.progress = [&loading](std::uint64_t done, std::uint64_t total) {
        if (loading) loading->update(done, total);
    };
    options.packed_cache = {.folder = settings_.packed_cache_folder, .logger = &logger_};
    options.packed_cache.write_progress = [&](std::uint64_t done, std::uint64_t total) {
        loading.reset();
        if (!writing) writing.emplace("writing packed weights");
        writing->update(done, total);
    };
    auto runner = engine::load_runner(checkpoint_, device_, options);
    if (!runner) return at_file(checkpoint_.path, runner.error());
    return runner;
}

base::Status ModelSession::start(const std::string& model_name, std::function<void()> on_idle,
                                 std::unique_ptr<engine::StepLogFile> step_log) {
    const base::TimePoint began = base::system_clock().now();
    auto runner = load_runner();
    if (!runner) return std::move(runner).error();
    auto engine = engine::Engine::start({.executor = std::move(runner).value(),
                                         .tokenizer = text_.tokenizer.get(),
                                         .vocab_size = sizes_.vocab,
                                         .scheduler = settings_.scheduler,
                                         .max_queue_bytes = kQueueBytes,
                                         .model_name = model_name,
                                         .metrics = &metrics_,
                                         .logger = &logger_,
                                         .clock = &base::system_clock(),
                                         .on_idle = std::move(on_idle),
                                         .step_log = std::move(step_log)});
    if (!engine) return std::move(engine).error();
    engine_ = std::move(engine).value();
    load_seconds_ = std::chrono::duration<double>(base::system_clock().now() - began).count();
    return {};
}

}  // namespace pagoda::apps
