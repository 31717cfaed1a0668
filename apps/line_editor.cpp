#include "line_editor.h"

#include <clocale>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>

namespace pagoda::apps {
namespace {

constexpr int kHistoryLines = 1000;

}  // namespace

struct LineEditor::Impl {
    std::string prompt;
    std::string history_file;
    EditLine* editor = nullptr;
    History* history = nullptr;
    bool is_continued = false;
    bool was_interrupted = false;  // Ctrl-C came last, on an empty line

    static Impl& of(EditLine* editor) {
        void* self = nullptr;
        el_get(editor, EL_CLIENTDATA, &self);
        return *static_cast<Impl*>(self);
    }

    static char* prompt_of(EditLine* editor) {
        static char continuation[] = "... ";
        Impl& self = of(editor);
        return self.is_continued ? continuation : self.prompt.data();
    }

    // Ctrl-C is a key here: the terminal sends no signal while a line is edited.
    static unsigned char interrupt(EditLine* editor, int) {
        Impl& self = of(editor);
        const LineInfo* line = el_line(editor);
        const auto length = static_cast<int>(line->lastchar - line->buffer);
        if (length == 0 && self.was_interrupted) return CC_EOF;
        self.was_interrupted = length == 0;
        el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
        if (length > 0) el_deletestr(editor, length);
        if (length == 0) fmt::print(stderr, "\n(Ctrl-C again or Ctrl-D leaves, /help helps)\n");
        return CC_REDISPLAY;
    }

    // Ctrl-D typed while an answer is written: the terminal, which isn't raw then, keeps it as NUL.
    static unsigned char end(EditLine* editor, int) {
        const LineInfo* line = el_line(editor);
        return line->lastchar == line->buffer ? CC_EOF : CC_NORM;
    }

    // Its line, or nothing at the end.
    std::optional<std::string> read_line() {
        int length = 0;
        // Before the prompt shows: keys are the editor's from then on.
        el_set(editor, EL_PREP_TERM, 1);
        const char* line = el_gets(editor, &length);
        if (line == nullptr || length <= 0) return std::nullopt;
        std::string text(line, static_cast<std::size_t>(length));
        if (text.ends_with('\n')) text.pop_back();
        return text;
    }
};

LineEditor::LineEditor(std::string prompt, std::string history_file)
    : impl_(std::make_unique<Impl>()) {
    // The editor takes characters as the locale says; without one of UTF-8 it would drop them.
    const char* locale = std::setlocale(LC_CTYPE, "");
    if (locale == nullptr || std::string_view(nl_langinfo(CODESET)) != "UTF-8")
        std::setlocale(LC_CTYPE, "C.UTF-8");
    impl_->prompt = std::move(prompt);
    impl_->history_file = std::move(history_file);
    impl_->editor = el_init("pagoda", stdin, stdout, stderr);
    impl_->history = history_init();
    HistEvent event;
    history(impl_->history, &event, H_SETSIZE, kHistoryLines);
    history(impl_->history, &event, H_SETUNIQUE, 1);
    if (!impl_->history_file.empty())
        history(impl_->history, &event, H_LOAD, impl_->history_file.c_str());
    EditLine* editor = impl_->editor;
    el_set(editor, EL_CLIENTDATA, impl_.get());
    el_set(editor, EL_PROMPT, &Impl::prompt_of);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, impl_->history);
    el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor, EL_ADDFN, "pagoda-interrupt", "clears the line or leaves", &Impl::interrupt);
    el_set(editor, EL_BIND, "^C", "pagoda-interrupt", nullptr);
    el_set(editor, EL_ADDFN, "pagoda-end", "leaves", &Impl::end);
    el_set(editor, EL_BIND, "^@", "pagoda-end", nullptr);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(editor, nullptr);
}

LineEditor::~LineEditor() {
    HistEvent event;
    if (!impl_->history_file.empty()) {
        std::error_code ignored;  // a history that can't be kept is no fault of the chat
        const std::filesystem::path path(impl_->history_file);
        std::filesystem::create_directories(path.parent_path(), ignored);
        const mode_t old = umask(0077);
        history(impl_->history, &event, H_SAVE, impl_->history_file.c_str());
        umask(old);
    }
    history_end(impl_->history);
    el_end(impl_->editor);
}

std::optional<std::string> LineEditor::read() {
    std::string text;
    impl_->is_continued = false;
    while (true) {
        impl_->was_interrupted = false;
        auto line = impl_->read_line();
        if (!line) return std::nullopt;
        const bool goes_on = line->ends_with('\\');
        if (goes_on) line->back() = '\n';
        text += *line;
        if (!goes_on) break;
        impl_->is_continued = true;
    }
    HistEvent event;
    if (!text.empty()) history(impl_->history, &event, H_ENTER, text.c_str());
    return text;
}

}  // namespace pagoda::apps
