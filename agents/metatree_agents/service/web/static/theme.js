// The colours that a person chose, before anything is painted; without a choice they are those of the system.
try {
  const chosen = localStorage.getItem("colours");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* a browser that keeps nothing: the system's colours will do */ }
