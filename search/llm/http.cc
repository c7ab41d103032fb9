#include "search/llm/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "base/error.h"
#include "base/text.h"

namespace cb::llm {
namespace {

constexpr size_t kMaxErrorBody = size_t{64} << 10;
constexpr size_t kMaxHeader = 1024;

struct CurlDeleter {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, ListDeleter>;

void append(Headers& list, const std::string& line) {
  curl_slist* longer = ::curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  list.release();
  list.reset(longer);
}

/// "https://host:port" of a URL: what a message may say of it.
std::string host_of(const std::string& url) {
  size_t start = url.find("://");
  if (start == std::string::npos) return url.substr(0, url.find('/'));
  return url.substr(0, url.find('/', start + 3));
}

/// One transfer, as libcurl's callbacks see it.
struct Transfer {
  CURL* handle = nullptr;
  const OnData* on_data = nullptr;
  HttpAnswer answer;

  void take_header(std::string_view line) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.size() > kMaxHeader) return;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string value(trim(line.substr(colon + 1)));
    if (name == "retry-after") {
      answer.retry_after_s = parse_retry_after(value, static_cast<double>(std::time(nullptr)));
    } else if (name == "x-request-id" || name == "request-id") {
      answer.request_id = printable(value, 200);
    }
  }

  bool take_body(std::string_view bytes) {
    long status = 0;
    ::curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    if (status == 200) {
      answer.cut_off = !(*on_data)(bytes);
      return !answer.cut_off;
    }
    size_t room = kMaxErrorBody - std::min(kMaxErrorBody, answer.body.size());
    answer.body += bytes.substr(0, room);
    return true;
  }
};

size_t on_header(char* data, size_t size, size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->take_header({data, size * count});
  return size * count;
}

size_t on_body(char* data, size_t size, size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take_body({data, size * count}) ? size * count : 0;
}

void set_certificates(CURL* handle) {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}) {
    const char* path = std::getenv(name);
    if (path == nullptr || *path == '\0') continue;
    ::curl_easy_setopt(handle, CURLOPT_CAINFO, path);
    return;
  }
}

void set_options(CURL* handle, const HttpCall& call, const Limits& limits, curl_slist* headers,
                 Transfer& transfer) {
  ::curl_easy_setopt(handle, CURLOPT_URL, call.url.c_str());
  ::curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(handle, CURLOPT_POSTFIELDS, call.body.data());
  ::curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(call.body.size()));
  ::curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  ::curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  // A redirect would carry the key to another host.
  ::curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  ::curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(limits.connect_timeout_s * 1000));
  ::curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(limits.total_timeout_s * 1000));
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                     std::max(1L, static_cast<long>(limits.idle_timeout_s)));
  ::curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  ::curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  ::curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  set_certificates(handle);
}

Failure failure_of_transfer(CURLcode code, const std::string& url, const char* details) {
  std::string what =
      fmt::format("{}: {}", host_of(url), *details != '\0' ? details : ::curl_easy_strerror(code));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {FailureKind::kTimeout, what};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {FailureKind::kBadRequest, what};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return {
          FailureKind::kBadRequest,
          what + "; SSL_CERT_FILE names the certificates to trust, if they are not the system's"};
    default:
      return {FailureKind::kNetwork, what};
  }
}

class HttpClient : public Client {
 public:
  HttpClient(std::unique_ptr<Protocol> protocol, Limits limits)
      : protocol_(std::move(protocol)), limits_(std::move(limits)) {}

  Completion complete(const Request& request) override {
    std::unique_ptr<ReplyReader> reader = protocol_->reader();
    EventStream events([&](const EventStream::Event& event) { reader->take(event); });
    bool too_large = false;
    uint64_t received = 0;
    auto answer = post_json(protocol_->call(request), limits_, [&](std::string_view bytes) {
      received += bytes.size();
      events.feed(bytes);
      // Events wrap a few bytes of text in a few hundred of JSON; more than that is no answer.
      too_large = reader->text().size() > limits_.max_reply_bytes ||
                  received > 1024 * limits_.max_reply_bytes;
      return !too_large && !(limits_.is_enough && limits_.is_enough(reader->text()));
    });
    if (!answer) return tl::unexpected(answer.error());
    if (answer->status != 200) {
      return tl::unexpected(failure_of(answer->status, answer->body, answer->retry_after_s));
    }
    if (too_large) {
      return tl::unexpected(
          Failure{FailureKind::kTooLarge,
                  fmt::format("more than {} bytes of answer", limits_.max_reply_bytes), 200});
    }
    Completion done = answer->cut_off ? Completion(reader->cut_off()) : reader->finish();
    if (done && !answer->request_id.empty()) done->request_id = answer->request_id;
    return done;
  }

 private:
  std::unique_ptr<Protocol> protocol_;
  Limits limits_;
};

}  // namespace

tl::expected<HttpAnswer, Failure> post_json(const HttpCall& call, const Limits& limits,
                                            const OnData& on_data) {
  static std::once_flag initialised;
  std::call_once(initialised, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURL, CurlDeleter> handle(::curl_easy_init());
  if (!handle) throw Error(ErrorCode::kSystem, "libcurl cannot be initialised");
  Headers headers;
  append(headers, "Content-Type: application/json");
  append(headers, "Accept: text/event-stream");
  for (const auto& [name, value] : call.headers) {
    // A line break in a key would be a header of its own.
    if (value.find_first_of("\r\n") != std::string::npos) {
      return tl::unexpected(Failure{FailureKind::kAuthentication,
                                    fmt::format("the value of {} has a line break", name)});
    }
    append(headers, name + ": " + value);
  }
  Transfer transfer{handle.get(), &on_data, {}};
  char details[CURL_ERROR_SIZE] = "";
  ::curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, details);
  set_options(handle.get(), call, limits, headers.get(), transfer);
  CURLcode code = ::curl_easy_perform(handle.get());
  long status = 0;
  ::curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  if (code == CURLE_OK || transfer.answer.cut_off) return std::move(transfer.answer);
  return tl::unexpected(failure_of_transfer(code, call.url, details));
}

std::unique_ptr<Client> http_client(std::unique_ptr<Protocol> protocol, Limits limits) {
  return std::make_unique<HttpClient>(std::move(protocol), std::move(limits));
}

}  // namespace cb::llm
