// What an action came to: a line that is read out, and goes away by itself if it was good.

import { store } from "../store";

interface Notice {
  id: number;
  good: boolean;
  text: string;
}

const notices = store<Notice[]>([]);
let last = 0;

export function notify(text: string, good = true): void {
  const id = ++last;
  notices.set([...notices.get().slice(-3), { id, good, text }]);
  if (good) setTimeout(() => dismiss(id), 6000);
}

function dismiss(id: number): void {
  notices.set(notices.get().filter((notice) => notice.id !== id));
}

/** Does something and says how it went; with nothing to say, only if it failed. True if it was done. */
export async function attempt(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    if (done !== "") notify(done);
    return true;
  } catch (error) {
    notify(error instanceof Error ? error.message : String(error), false);
    return false;
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.use().map((notice) => (
        <p key={notice.id} class={notice.good ? "notice good" : "notice bad"}>
          <span>{notice.text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
