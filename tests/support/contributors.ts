/** Who adds a version to what `alice` made with the scopes `team-a/*`, how the draft differs, and whether it is taken. */
export const contributors: [who: string, draft: object, taken: boolean][] = [
  ['its owner', {}, true],
  ['somebody else', { owner: 'bob' }, false],
  ['an admin', { owner: 'bob', may_take_over: true }, true],
  ['an admin of other scopes', { owner: 'bob', may_take_over: true, scopes: ['team-b/*'] }, false],
  ['a narrower key of the same name', { scopes: ['team-a/x'] }, false],
  ['a wider key of the same name', { scopes: ['team-*'] }, true],
]
