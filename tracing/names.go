package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Scope is the instrumentation scope of all spans of Jetcrew.
const Scope = "github.com/jetcrew/jetcrew"

// The headers of W3C Trace Context and W3C Baggage, as they stand on the wire. NATS header names are case-sensitive;
// these are written exactly so, and read in any case.
const (
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
	HeaderBaggage     = "baggage"
)

// The first words of span names. What follows is from a closed set: an agent's name, a model, a registered tool, a
// subject template.
const (
	SpanAgent   = "invoke_agent" // INTERNAL, one exchange of an agent: the root
	SpanTurn    = "turn"         // INTERNAL, one model request and the calls it asked for
	SpanChat    = "chat"         // CLIENT, one model request
	SpanCompact = "compact"      // INTERNAL, one compaction of the memory
	SpanTool    = "execute_tool" // INTERNAL, one tool call from decision to result
	SpanPublish = "publish"      // PRODUCER, one message sent
	SpanProcess = "process"      // CONSUMER, one delivery of a message worked on
)

// NameOther stands in a span name for a tool that is not registered: models invent names, and each distinct span name
// costs the store behind the collector.
const NameOther = "other"

// SystemNATS is the value of messaging.system.
const SystemNATS = "nats"

// The attributes of GenAI and messaging spans. They are those of the OpenTelemetry semantic conventions 1.41.0, the
// last version of the package that holds gen_ai.
const (
	AttrProvider      = semconv.GenAIProviderNameKey
	AttrAgentID       = semconv.GenAIAgentIDKey
	AttrAgentName     = semconv.GenAIAgentNameKey
	AttrConversation  = semconv.GenAIConversationIDKey
	AttrRequestModel  = semconv.GenAIRequestModelKey
	AttrRequestStream = semconv.GenAIRequestStreamKey
	AttrResponseModel = semconv.GenAIResponseModelKey
	AttrFinishReasons = semconv.GenAIResponseFinishReasonsKey
	AttrInputTokens   = semconv.GenAIUsageInputTokensKey
	AttrOutputTokens  = semconv.GenAIUsageOutputTokensKey
	AttrCacheRead     = semconv.GenAIUsageCacheReadInputTokensKey
	AttrCacheCreation = semconv.GenAIUsageCacheCreationInputTokensKey
	AttrToolName      = semconv.GenAIToolNameKey
	AttrToolType      = semconv.GenAIToolTypeKey
	AttrToolCallID    = semconv.GenAIToolCallIDKey
	AttrErrorType     = semconv.ErrorTypeKey
	AttrMessaging     = semconv.MessagingSystemKey
	AttrMessagingOp   = semconv.MessagingOperationNameKey
	AttrMessagingType = semconv.MessagingOperationTypeKey
	AttrDestination   = semconv.MessagingDestinationNameKey
	AttrTemplate      = semconv.MessagingDestinationTemplateKey
	AttrConsumerGroup = semconv.MessagingConsumerGroupNameKey
	AttrClientID      = semconv.MessagingClientIDKey
	AttrMessageID     = semconv.MessagingMessageIDKey
	AttrMessageRun    = semconv.MessagingMessageConversationIDKey
	AttrMessageSize   = semconv.MessagingMessageBodySizeKey
)

// Values of the attributes above.
const (
	toolTypeFunction   = "function"
	operationTypeSend  = "send"
	operationTypeWork  = "process"
	errorTypeOther     = "_OTHER"
	errorTypeTimeout   = "Timeout"
	errorTypeCancelled = "Cancelled"
)

// The attributes of Jetcrew's own.
const (
	AttrTurn     = attribute.Key("jetcrew.turn")             // number of the turn, from 1
	AttrIndex    = attribute.Key("jetcrew.index")            // index of the call within its turn, from 0
	AttrQueue    = attribute.Key("jetcrew.queue")            // queue of the tool
	AttrDelivery = attribute.Key("jetcrew.delivery")         // which delivery of the message this is, from 1
	AttrStrategy = attribute.Key("jetcrew.strategy")         // of a compaction: window or summary
	AttrHandoff  = attribute.Key("jetcrew.handoff.id")       // of a sub-agent's call
	AttrSubagent = attribute.Key("jetcrew.handoff.subagent") // id of the agent that it goes to
	AttrDepth    = attribute.Key("jetcrew.handoff.depth")    // runs above the sub-agent's
	AttrStatus   = attribute.Key("jetcrew.handoff.status")   // completed, failed, fallback or denied
	AttrAttempts = attribute.Key("jetcrew.handoff.attempts") // runs that it took
	AttrCut      = attribute.Key("jetcrew.cut")              // what was shortened before export, each as "what=original bytes"
)
