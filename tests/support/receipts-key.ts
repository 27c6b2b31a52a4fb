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

/** Another key of a test. */
export const OTHER_KEY = JSON.stringify({
  keys: [
    {
      key: '56475aa75463474c',
      x: 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg',
      d: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8',
      from: '2026-11-01T00:00:00.000Z',
    },
  ],
})
