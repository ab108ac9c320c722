/** How each vendor says that the conversation no longer fits; there is no common code for it. */
const WORDINGS = [
  /prompt is too long/i, // Anthropic
  /exceed context limit/i, // Anthropic: input length and `max_tokens`
  /request_too_large/i, // Anthropic
  /context_length_exceeded/i, // OpenAI's code
  /exceeds the context window/i, // OpenAI responses
  /maximum context length/i, // OpenAI chat, vLLM, OpenRouter
  /token count.{0,40}exceeds the maximum number of tokens/i, // Gemini
  /exceeds? the available context/i, // llama.cpp
  /context (?:length|window|size|limit).{0,30}exceed/i, // Ollama, LM Studio and others
  /(?:greater|longer) than the context length/i, // LM Studio
  /must be less than max_seq_len/i, // SiliconFlow
  /reduce the length of the (?:messages|prompt|input)/i
]

export function saysContextFull(text: string): boolean {
  return WORDINGS.some((wording) => wording.test(text))
}
