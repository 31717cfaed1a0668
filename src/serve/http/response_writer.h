#pragma once
// ResponseWriter: the way back of one request. Either send() once, or begin_stream(), any number
// of write() and end(). Any thread may call; calls of one writer are ordered by their caller.
// Never blocks: what the reader does not take is buffered up to a limit, beyond which the reader
// loses its stream.

#include <functional>
#include <string>

#include "serve/http/message.h"

namespace pagoda::http {

class ResponseWriter {
  public:
    virtual ~ResponseWriter() = default;
    virtual void send(Response response) = 0;
    // Headers go out at once; comments keep the connection alive while nothing is written.
    virtual void begin_stream(Response head) = 0;
    virtual void write(std::string data) = 0;
    virtual void end() = 0;
    // Called once, on an HTTP thread, if the reader goes away before the end; at once if it has.
    virtual void on_disconnect(std::function<void()> callback) = 0;
};

}  // namespace pagoda::http
