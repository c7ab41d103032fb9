#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "search/llm/client.h"
#include "search/llm/protocol.h"

namespace cb::llm {

struct HttpAnswer {
  int status = 0;
  std::string body;  ///< of answers other than 200, at most 64 KiB
  std::optional<double> retry_after_s;
  std::string request_id;  ///< x-request-id or request-id
  bool cut_off = false;    ///< `on_data` said that it is enough
};

/// Takes the body of an answer 200 as it arrives; false stops the transfer.
using OnData = std::function<bool(std::string_view bytes)>;

/// POSTs JSON and reads the answer. Proxies come from the environment as libcurl reads it
/// (https_proxy, no_proxy, ...), certificates from SSL_CERT_FILE, CURL_CA_BUNDLE or
/// REQUESTS_CA_BUNDLE where one is set. Failures name the host, never headers. Thread-safe.
tl::expected<HttpAnswer, Failure> post_json(const HttpCall& call, const Limits& limits,
                                            const OnData& on_data);

/// One attempt of a request over HTTP, streamed.
std::unique_ptr<Client> http_client(std::unique_ptr<Protocol> protocol, Limits limits);

}  // namespace cb::llm
