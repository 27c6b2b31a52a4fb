/**
 * Contributors to what `alice` made with the scopes `team-a/*`, how the draft differs, and whether
 * it is accepted.
 */
export const contributors: [who: string, draft: object, taken: boolean][] = [
  ['its owner', {}, true],
  ['another key, though of the same name', { owner_id: 'key-of-bob' }, false],
  ['an admin', { owner: 'bob', owner_id: 'key-of-bob', may_take_over: true }, true],
  ['an admin of other scopes', { owner: 'bob', owner_id: 'key-of-bob', may_take_over: true, scopes: ['team-b/*'] }, false],
  ['its owner, were the key narrower now', { scopes: ['team-a/x'] }, false],
  ['its owner, were the key wider now', { scopes: ['team-*'] }, true],
]
