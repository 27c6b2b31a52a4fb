/** Tells the model of an agent that may write reflexes when they pay off. */
export const reflexGuidance = `You may write reflexes: small JavaScript programs \`function reflex(context)\` that see each event before you do and act at once, without you.
A reflex pays where you decide the same thing again and again and everything that you decide it by is in its context: event, recent_events (the last 10), window (counts by type and source over 10s, 1m, 10m),
recent_actions, scratch, thinking. It returns an action such as {"action_type": "call_tool", "tool": "…", "args": {…}} or {"action_type": "reply", "content": "…"}, or null where it is not sure: then you are asked, as now.
It has no clock, no randomness, no network, and keeps nothing between runs. Call test_reflex first, then write_reflex, then name it in update_agent_config.
What you write only watches at first; it acts by itself once it has decided as you did often enough. Retire one that decides wrongly, and say so with overrule_reflex. Do not write one for what needs judgement or happens once.`

/** Names of the tools that the guidance mentions. */
export const reflexToolNames = [
  'write_reflex',
  'list_reflexes',
  'read_reflex',
  'test_reflex',
  'update_agent_config',
  'retire_reflex',
  'overrule_reflex',
] as const
