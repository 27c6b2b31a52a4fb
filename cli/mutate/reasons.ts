/** Why the tests may live with some changes: `from` and `to` as the page shows them. */
type Reason = { file: string; why: string; changes: readonly (readonly [from: string, to: string])[] }

export const reasons: readonly Reason[] = [
  {
    file: 'src/skills/gate/gate.ts',
    why: 'The same: no stage is read from a text, only a missing slot can be parsable, and a hint that is shown has a letter.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ["need.need === 'slot'", 'true'],
      ['hint[0]?.toUpperCase', 'hint[0].toUpperCase'],
    ],
  },
  {
    file: 'src/skills/gate/judge-policy.ts',
    why: 'The same: the question asks for no approval, the policy reads no cues, tools or successes, and no input is called undefined.',
    changes: [
      ["verdict === 'allow' || verdict === 'needs_promotion'", 'true'],
      ['[]', '["Stryker was here"]'],
      ['false', 'true'],
      ['name !== undefined', 'true'],
    ],
  },
  {
    file: 'src/skills/gate/mask.ts',
    why: 'The same, and slower: a mask without secrets hides nothing, a number is not an address, and a walk that ends later finds no room either.',
    changes: [
      ['secrets.length === 0', 'false'],
      ['secrets.length === 0 && looksPlain(shown)', 'false'],
      ['{ emails: false }', '{}'],
      ['false', 'true'],
      ['left < 0', 'false'],
    ],
  },
  {
    file: 'src/skills/gate/outcomes.ts',
    why: 'The same: a value that is missing names no secret and looks like none, and a list of regions has texts alone.',
    changes: [
      ['value === undefined', 'false'],
      ["typeof region === 'string'", 'true'],
    ],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'The keys of D1 are asked in workerd: tests/worker/http/auth notices these changes.',
    changes: [
      [
        'cache ??= createKeyCache((id) => findKey(storeOf(env), id), Date.now)',
        'cache &&= createKeyCache(id => findKey(storeOf(env), id), Date.now)',
      ],
      ['(id) => findKey(storeOf(env), id)', '() => undefined'],
      ['{ keys: cache.find, knows: cache.knows, any_key: () => isAnyKey(env), noted: (key) => noteUse(storeO', '{}'],
      ['(key) => noteUse(storeOf(env), key)', '() => undefined'],
      ['() => isAnyKey(env)', '() => undefined'],
      ['{ cache ??= createKeyCache((id) => findKey(storeOf(env), id), Date.now) return { keys: cache.find, k', '{}'],
      ['{ if (any && Date.now() < any.until) return any.found any = { found: await anyKey(storeOf(env)), unt', '{}'],
      ['{ if (key_id === ADMIN_KEY_ID) return false // While D1 is away, what is open stays so. const key = ', '{}'],
      ['key_id === ADMIN_KEY_ID', 'true'],
      ['key_id === ADMIN_KEY_ID', 'false'],
      ['key_id === ADMIN_KEY_ID', 'key_id !== ADMIN_KEY_ID'],
      ['key === null || (key !== undefined && hasExpired(key))', 'true'],
      ['key === null || (key !== undefined && hasExpired(key))', 'false'],
      ['key === null || (key !== undefined && hasExpired(key))', 'key === null && key !== undefined && hasExpired(key)'],
      ['key === null', 'false'],
      ['key === null', 'key !== null'],
      ['key !== undefined && hasExpired(key)', 'false'],
      ['key !== undefined && hasExpired(key)', 'key !== undefined || hasExpired(key)'],
      ['key !== undefined', 'true'],
      ['key !== undefined', 'key === undefined'],
    ],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'Whether any key exists words a refusal alone, and how long the answer is kept is a matter of cost.',
    changes: [
      ['any && Date.now() < any.until', 'true'],
      ['any && Date.now() < any.until', 'false'],
      ['any && Date.now() < any.until', 'any || Date.now() < any.until'],
      ['Date.now() < any.until', 'true'],
      ['Date.now() < any.until', 'Date.now() <= any.until'],
      ['Date.now() < any.until', 'Date.now() >= any.until'],
      ['{ found: await anyKey(storeOf(env)), until: Date.now() + ANY_KEY_MS }', '{}'],
      ['Date.now() + ANY_KEY_MS', 'Date.now() - ANY_KEY_MS'],
      ['cache?.forget', 'cache.forget'],
    ],
  },
  {
    file: 'src/skills/gate/outcomes.ts',
    why: 'The same: no slot has that name, and what never ran ran at the beginning of time.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['last_run_at === null', 'false'],
      ['until !== null', 'true'],
    ],
  },
  {
    file: 'src/skills/gate/pushed.ts',
    why: 'The same: an empty pattern, and one that no name has, match nothing.',
    changes: [
      ["one.trim() === ''", 'false'],
      ['one.trim()', 'one'],
      ['[]', '["Stryker was here"]'],
    ],
  },
  {
    file: 'src/skills/gate/mask.ts',
    why: 'The same: a text is a part of itself, no other value is written as the number of a card, an empty word is no address, and the negative of a sum ends with a zero, too.',
    changes: [
      ["typeof value === 'string'", 'false'],
      ["typeof value === 'number'", 'true'],
      ['/[\\s<>()[\\],;:"]+/', '/[\\s<>()[\\],;:"]/'],
      ['[]', '["Stryker was here"]'],
      ['groups.slice(start)', 'groups'],
      ['sum += doubled > 9 ? doubled - 9 : doubled', 'sum -= doubled > 9 ? doubled - 9 : doubled'],
    ],
  },
  {
    file: 'src/traces/redact.ts',
    why: 'The same: the names that hide nothing are remembered for speed alone, a value without texts gives none, and JSON has no undefined.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['plain.has(name)', 'false'],
      ['plain.size >= MOST_NAMES', 'true'],
      ['plain.size >= MOST_NAMES', 'false'],
      ['plain.size >= MOST_NAMES', 'plain.size > MOST_NAMES'],
      ['plain.size >= MOST_NAMES', 'plain.size < MOST_NAMES'],
      ['name.length <= LONGEST_NAME', 'true'],
      ['name.length <= LONGEST_NAME', 'false'],
      ['name.length <= LONGEST_NAME', 'name.length < LONGEST_NAME'],
      ['name.length <= LONGEST_NAME', 'name.length > LONGEST_NAME'],
      ['plain.add(name)', ';'],
      ['names === null || names.some(hides)', 'true'],
      ["typeof value !== 'object'", 'false'],
      ["typeof redacted !== 'object'", 'false'],
      ["typeof inner === 'object'", 'true'],
    ],
  },
  {
    file: 'src/traces/redact.ts',
    why: 'The same: both names that are compared are changed alike.',
    changes: [['name.toLowerCase()', 'name.toUpperCase()']],
  },
  {
    file: 'src/base/secrets.ts',
    why: 'The same, and slower: a search that shifts less, a value that is walked although it holds nothing, a form that is listed twice.',
    changes: [
      ['json !== null && !finds(json) && !isTooDeep(value)', 'false'],
      ['json !== null', 'true'],
      ['json !== null', 'json === null'],
      ['word !== secret', 'true'],
      ['/\\s+/', '/\\s/'],
      ['level < ESCAPES', 'level <= ESCAPES'],
      ['/^\\s*[[{"]/', '/\\s*[[{"]/'],
      ['patterns.length === 0', 'false'],
      ['shortest < BLOCK + 1', 'true'],
      ['shortest < BLOCK + 1', 'shortest <= BLOCK + 1'],
      ['shifts[slot] ?? 0', 'shifts[slot] && 0'],
      ['shift === 0', 'true'],
      ['shortest - BLOCK + 1', 'shortest - BLOCK - 1'],
      ['[]', '["Stryker was here"]'],
      ['SLOTS - 1', 'SLOTS + 1'],
      ['hider.finds(error.message)', 'true'],
      ["typeof value === 'string'", 'true'],
      ['ending.get(slot)?.some', 'ending.get(slot).some'],
    ],
  },
  {
    file: 'src/traces/keyed-hash.ts',
    why: 'The same: no field has that name.',
    changes: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/features/market/ledger/decide.ts',
    why: 'The same: no transfer follows the last one, a chain is not empty, and an id is known by a row or by a failure.',
    changes: [
      ['from < transfers.length', 'from <= transfers.length'],
      ['to < transfers.length', 'true'],
      ['to < transfers.length', 'to <= transfers.length'],
      ['transfers[to]?.linked', 'transfers[to].linked'],
      ['chain.length > 1', 'false'],
      ['chain[0]?.linked', 'chain[0].linked'],
      ['chain.at(-1)?.linked', 'chain.at(-1).linked'],
      ['result?.reason', 'result.reason'],
      ['failed?.asked', 'failed.asked'],
      ['failed?.reason', 'failed.reason'],
      ['old?.[field]', 'old[field]'],
    ],
  },
  {
    file: 'src/features/market/ledger/decide.ts',
    why: 'The same answers: what exists is found again, an id that is reserved has failed before, and no transfer has an id that is missing.',
    changes: [
      ['own.made.length > 0', 'true'],
      ['own.made.length > 0', 'own.made.length >= 0'],
      ["typeof one === 'object'", 'true'],
      ['pending_id === undefined', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/decide.ts',
    why: 'The same: genesis reserves nothing, any other account pays at most what it received, and whoever makes the account gives it its owner.',
    changes: [
      ['payer.debits_posted + payer.debits_pending', 'payer.debits_posted - payer.debits_pending'],
      ['owner ?? null', 'owner && null'],
    ],
  },
  {
    file: 'src/features/market/ledger/draft.ts',
    why: 'The same: no row has the id null, the first draft has all accounts, and only limits read what an account has spent.',
    changes: [
      ['row.pending_id === null', 'false'],
      ['this.#below?.account', 'this.#below.account'],
      ['debit.limits', 'true'],
    ],
  },
  {
    file: 'src/features/market/ledger/ledger.ts',
    why: 'Each account has the sums of its own moves, and each move has two sides: pending sums differ only if the query itself is wrong.',
    changes: [
      ["problems.push('Pending debits and credits differ.')", ';'],
      ["total('debits_pending') !== total('credits_pending')", 'false'],
    ],
  },
  {
    file: 'src/core/event.ts',
    why: 'The same: null was replaced before, the library reads the same clock, and the schema refuses what is not a text.',
    changes: [
      ['value !== null', 'true'],
      ['{ msecs: Date.now() }', '{}'],
      ["typeof value === 'string'", 'true'],
    ],
  },
  {
    file: 'src/core/scoped-locks.ts',
    why: 'The same: a held lock always has its queue, and only a signal calls what reads its reason.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['signal?.reason', 'signal.reason'],
    ],
  },
  {
    file: 'src/core/event-statements.ts',
    why: 'The same: the statement for expired leases does not read tokens.',
    changes: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/core/event-store.ts',
    why: 'It frees a timer and a listener: what they would call later does nothing.',
    changes: [
      ['clearTimeout(timer)', ';'],
      ['this.#subscribers.delete(wake)', ';'],
    ],
  },
  {
    file: 'src/core/decision-context.ts',
    why: 'The same matches: two stars match what one does. The other two bound the memory of a filter, and not what it passes.',
    changes: [
      ['/\\*+/g', '/\\*/g'],
      ['[...earlier, { id: event.id, at }].slice(-limit)', '[...earlier, { id: event.id, at }]'],
      ['rested?.[1].every((other) => other.at <= at - window_ms)', 'rested?.[1].some(other => other.at <= at - window_ms)'],
    ],
  },
  {
    file: 'src/evidence/binomial.ts',
    why: 'The same number: equal terms add up in either order, the search ends at 1, and one more halving is below what a double resolves.',
    changes: [
      ['term > highest', 'term >= highest'],
      ['k >= n', 'k > n'],
      ['k >= n', 'false'],
      ['step < HALVINGS', 'step <= HALVINGS'],
      ['binomialTail({ n, k }, middle) > delta', 'binomialTail({ n, k }, middle) >= delta'],
    ],
  },
  {
    file: 'src/core/node/index.ts',
    why: 'A statement that is prepared once saves time alone.',
    changes: [['statements.set(sql, statement)', ';']],
  },
  {
    file: 'src/evidence/attribution.ts',
    why: 'The same: no value is called so.',
    changes: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/evidence/branches.ts',
    why: 'The same, or as good: either of the rarest signs may go, no sign has this name, and zero has its size before.',
    changes: [
      ['other[1] < one[1]', 'other[1] <= one[1]'],
      ['[]', '["Stryker was here"]'],
      ['value < 0', 'value <= 0'],
    ],
  },
  {
    file: 'src/evidence/edges.ts',
    why: 'The same: a text is not what a value of another type is.',
    changes: [["typeof other === 'string'", 'true']],
  },
  {
    file: 'src/evidence/values.ts',
    why: 'The same: empty words are left out.',
    changes: [['/[^\\p{L}\\p{N}]+/u', '/[^\\p{L}\\p{N}]/u']],
  },
  {
    file: 'src/evidence/numbers.ts',
    why: 'The same: a word has no digit in it, and a token without a separator is the number itself.',
    changes: [
      ['/^\\d/', '/\\d/'],
      ['groups.length > 1', 'true'],
      ['groups.length > 1', 'groups.length >= 1'],
    ],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'The same: a text that has the form of a key has both parts, and any other has none.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['id !== undefined && secret !== undefined', 'id !== undefined || secret !== undefined'],
      ['id !== undefined', 'true'],
      ['secret !== undefined', 'true'],
    ],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'The same: the hash of a key is kept to save time, and what is refused names its first error.',
    changes: [
      ['known_admin?.key !== key', 'true'],
      ['errors[0]?.message', 'errors[0].message'],
    ],
  },
  {
    file: 'src/http/auth/key-cache.ts',
    why: 'The same: no time is within an unknown one, and a full cache has an oldest entry.',
    changes: [
      ['missed_at !== undefined', 'true'],
      ['oldest !== undefined', 'true'],
    ],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'Node has no such function: the Worker tests run it.',
    changes: [["typeof crypto.subtle.timingSafeEqual === 'function'", 'false']],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'The same: a header has no line break, a token is never empty, and what throws counts as a possible key.',
    changes: [
      ['/^bearer +(\\S.*)$/i', '/^bearer +(\\S.*)/i'],
      ['admin_key !== undefined', 'true'],
      ['any_key === undefined', 'false'],
    ],
  },
  {
    file: 'src/http/auth/ticket.ts',
    why: 'The same: a text that has the form of a ticket has both parts. A ticket that is issued is far shorter than the bound.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['ticket.length <= LONGEST', 'ticket.length < LONGEST'],
      ['payload === undefined', 'false'],
      ['signature === undefined', 'false'],
    ],
  },
  {
    file: 'src/http/auth/ticket.ts',
    why: 'It derives the key again, or lets it be exported: no caller gets the key itself.',
    changes: [
      ['derived?.secret === secret', 'false'],
      ['false', 'true'],
      ['{ secret, key }', '{}'],
    ],
  },
  {
    file: 'src/evidence/drift.ts',
    why: 'The same: sums of rounded logarithms do not meet the bar exactly.',
    changes: [['next >= Math.log(FALSE_ALARM_AFTER)', 'next > Math.log(FALSE_ALARM_AFTER)']],
  },
  {
    file: 'src/evidence/e-process.ts',
    why: 'The same: a sum of rounded logarithms does not meet the logarithm of 20 exactly.',
    changes: [
      ['evidence(compared, poor, better) >= Math.log(EVIDENCE)', 'evidence(compared, poor, better) > Math.log(EVIDENCE)'],
      ['evidence(compared, 1 - bar.good, worse) >= Math.log(EVIDENCE)', 'evidence(compared, 1 - bar.good, worse) > Math.log(EVIDENCE)'],
    ],
  },
  {
    file: 'src/evidence/learn-then-test.ts',
    why: 'The same: a probability does not meet its level exactly, nor a count the ratio of two logarithms.',
    changes: [
      ['binomialTail(count, alpha) > level', 'binomialTail(count, alpha) >= level'],
      ['n >= leastFor(alpha, delta / 2)', 'n > leastFor(alpha, delta / 2)'],
    ],
  },
  {
    file: 'src/evidence/identity.ts',
    why: 'The same: no run is 0. A part begins at 1, and is missed from -1 on.',
    changes: [['run < 0', 'run <= 0']],
  },
  {
    file: 'src/evidence/certificate.ts',
    why: 'The same: judged again by the same settings, each stratum keeps its state.',
    changes: [['JSON.stringify(least) === JSON.stringify(before.least)', 'false']],
  },
  {
    file: 'src/evidence/certificate.ts',
    why: 'The same: what is opened too early would be opened next, and what was judged is judged alike once more.',
    changes: [
      ['one.act === REST', 'true'],
      ['one.act === REST', 'false'],
    ],
  },
  {
    file: 'src/evidence/certificate.ts',
    why: 'The same: of a stratum that nothing was compared for, the sentence has no place in the log, and whatever is in doubt is a stratum.',
    changes: [
      ['{ seq: 0, at }', '{}'],
      ['proven[0]?.act', 'proven[0].act'],
      ['proven[0]?.event_type', 'proven[0].event_type'],
    ],
  },
  {
    file: 'src/evidence/certificate.ts',
    why: 'The same: the stratum of all acts is open already when the acts that were proven with it are opened.',
    changes: [['one.act !== REST', 'true']],
  },
  {
    file: 'src/reflexes/decide.ts',
    why: 'The same: an action has a permission or a refusal, and a run that fired has an action.',
    changes: [
      ['permission?.ok', 'permission.ok'],
      ["run.reason === 'fired'", 'false'],
    ],
  },
  {
    file: 'src/reflexes/decide.ts',
    why: 'The same: no other action has a key and a value, and a field that is undefined is not in the JSON that reflexes are shown.',
    changes: [["acted.action.action_type === 'set_scratch'", 'true']],
  },
  {
    file: 'src/reflexes/decide.ts',
    why: 'The same: the value is set before it is read.',
    changes: [['false', 'true']],
  },
  {
    file: 'src/reflexes/history.ts',
    why: 'The same: no time is shorter than a cooldown that is not a number, and nothing follows but the end of the switch.',
    changes: [
      ['cooldown_s !== undefined', 'true'],
      ["case 'escalate': break", "case 'escalate':"],
    ],
  },
  {
    file: 'src/features/replay/report.ts',
    why: 'The same: beyond the end of both lists there is nothing on either side.',
    changes: [['index < length', 'index <= length']],
  },
  {
    file: 'src/features/replay/recorded-effects.ts',
    why: 'The same: a text is the failed call of no tool, no two effects have one place, and nothing is beyond the end of a list.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['first.place < second.place', 'first.place <= second.place'],
      ['list.next < list.effects.length', 'list.next <= list.effects.length'],
      ['effect', 'true'],
    ],
  },
  {
    file: 'src/skills/runner/call-step.ts',
    why: 'The same: nothing follows but the end of the switch, only a number is finite, and a cost of 0 is 0 either way.',
    changes: [
      ["case 'aborted': break", "case 'aborted':"],
      ["typeof cost === 'number'", 'true'],
      ['cost > 0', 'cost >= 0'],
    ],
  },
  {
    file: 'src/skills/runner/run-plan.ts',
    why: 'The same: no template and no expression sees a value that is undefined, such as an output that is too large would leave.',
    changes: [["output?.kind !== 'json'", 'false']],
  },
  {
    file: 'src/skills/runner/run-plan.ts',
    why: 'The same: no step has the index null, and whatever is undone or reported is a step of the plan.',
    changes: [
      ['entry.undoes === null', 'false'],
      ['run.plan.steps[entry.undoes]?.name', 'run.plan.steps[entry.undoes].name'],
      ['step?.name', 'step.name'],
      ['step?.tool', 'step.tool'],
    ],
  },
  {
    file: 'src/skills/runner/run-plan.ts',
    why: 'The same: a step that ended well has an output, and only a step that failed, whose error is known by then, leaves nothing mapped.',
    changes: [
      ['output?.kind', 'output.kind'],
      ['mapped?.ok === false', 'true'],
      ['mapped?.ok', 'mapped.ok'],
    ],
  },
  {
    file: 'src/features/market/ledger/load.ts',
    why: 'The same: a placeholder, an account that is undefined and a transfer that ends nothing name ids that nothing has.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ['debit !== undefined', 'true'],
      ['pending_id === undefined', 'false'],
      ['debit === undefined', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/load.ts',
    why: 'The same answers by more or other queries: what exists is found before it is asked whether it has left, and one id is found as many are.',
    changes: [
      ['ids.filter((id) => !draft.row(id) && !draft.failure(id))', 'ids'],
      ['!draft.row(id) && !draft.failure(id)', 'true'],
      ['!draft.row(id) && !draft.failure(id)', '!draft.row(id) || !draft.failure(id)'],
      ['ids.length === 0', 'false'],
      ['ids.length === 1', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/load.ts',
    why: 'The same: null is what JSON reads of null.',
    changes: [['limits === null', 'false']],
  },
  {
    file: 'src/features/market/ledger/departures.ts',
    why: 'The same: a placeholder is the id of nothing, only a pending transfer is ended by another, and each side of what was paid has its sums.',
    changes: [
      ['[]', '["Stryker was here"]'],
      ["kind === 'pending'", 'true'],
      ['payer', 'true'],
      ['payee', 'true'],
    ],
  },
  {
    file: 'src/features/market/ledger/departures.ts',
    why: 'The same: a failed transfer without a payer ends another one, a page without a last row is shorter than its limit, and nothing to forget is forgotten.',
    changes: [
      ['debit === undefined', 'false'],
      ['last === undefined', 'false'],
      ['old.length === 0', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/departures.ts',
    why: 'It keeps the digest of an id that no client may use, at the cost of a row.',
    changes: [["kind === 'timeout'", 'false']],
  },
  {
    file: 'src/http/auth/middleware.ts',
    why: 'The same: no key has the id undefined, so that the limit of the address counts.',
    changes: [['id === undefined', 'false']],
  },
  {
    file: 'src/features/market/ledger/ledger.ts',
    why: 'The same: a transfer that is asked has a result, what is made has its accounts in the draft, and a page that has a next one has a last row.',
    changes: [
      ['!result', 'false'],
      ["throw new Error('A transfer has no result')", ';'],
      ['!account', 'false'],
      ['items.at(-1)?.id', 'items.at(-1).id'],
      ['items.at(-1)?.seq', 'items.at(-1).seq'],
    ],
  },
  {
    file: 'src/features/market/ledger/ledger.ts',
    why: 'The same: where nothing is made or due nothing is written, and no pending transfer has the id null.',
    changes: [
      ['draft.made.length > 0', 'true'],
      ['draft.made.length > 0', 'draft.made.length >= 0'],
      ['pending_id !== null', 'true'],
      ['due.length === 0', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/ledger.ts',
    why: 'The same, at the cost of a row: what adds nothing is never beyond a limit.',
    changes: [
      ['bytes === 0', 'false'],
      ['count === 0', 'false'],
    ],
  },
  {
    file: 'src/features/market/ledger/draft.ts',
    why: 'The same: what is no row is no pending transfer.',
    changes: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/reflexes/promotion.ts',
    why: 'The same: no certificate has no strata, as the sum of none has.',
    changes: [['!first', 'false']],
  },
]

/** The same for breaks by hand, by their ids. */
export const reasonsByHand: Readonly<Record<string, string>> = {}
