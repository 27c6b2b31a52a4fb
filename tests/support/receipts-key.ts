/** The key that signs receipts in tests, and in nothing else. */
export const RECEIPTS_KEY = JSON.stringify({
  keys: [
    {
      key: '7db3bd5fa78952e5',
      x: 'jm6u4-S8Re7vFbH0QWgBkm09uivGfd0zrjFFlSMon0w',
      d: 'Dcbb98x_SziYbWHjN_ggrqHgZfthfKBk7g-taqCp2E8',
      from: '2026-11-01T00:00:00.000Z',
    },
  ],
})
